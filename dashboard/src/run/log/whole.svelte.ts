// All lines of a log. Lines are numbered without a gap, and a stream can begin behind any number: so any part of a log of a million
// lines is one request away, and only the parts in sight are kept.
import { listLog, logStreamPath } from '../../api/calls';
import { getEvents } from '../../api/client';
import type { LogEntry } from '../../api/types';
import { backoff, pause, seen } from '../../lib/poll';
import { Recent, type LogSource } from './source';

export const CHUNK = 500;
/** 20,000 lines at most are in memory. */
export const MOST_CHUNKS = 40;
const SCAN_PAGE = 1000;
const RETRY_MS = 1000;
/** Lines that come faster than the screen changes are shown together. */
const FRAME_MS = 50;

export class WholeLog implements LogSource {
  total = $state(0);
  /** Changes whenever lines came to hand. */
  version = $state(0);
  isLost = $state(false);
  #chunks = new Recent<number, (LogEntry | undefined)[]>(MOST_CHUNKS);
  #loading = new Map<number, AbortController>();

  constructor(readonly id: string) {}

  get chunksKept(): number {
    return this.#chunks.size;
  }

  rowOf(seq: number): number {
    return seq - 1;
  }

  get(row: number): LogEntry | undefined {
    // Whoever shows the row wants to know when it comes.
    void this.version;
    return this.#chunks.get(Math.floor(row / CHUNK))?.[row % CHUNK];
  }

  ensure(from: number, to: number): void {
    const first = Math.floor(from / CHUNK);
    const behind = Math.ceil(Math.min(to, this.total) / CHUNK);
    // Whoever scrolls fast passes many parts; those that are out of sight again must not stand in the way of the one in sight.
    for (const [chunk, control] of this.#loading) if (chunk < first || chunk >= behind) control.abort();
    for (let chunk = first; chunk < behind; chunk += 1) {
      if (!this.#isWhole(chunk) && !this.#loading.has(chunk)) void this.#load(chunk);
    }
  }

  #isWhole(chunk: number): boolean {
    const lines = this.#chunks.get(chunk);
    if (!lines) return false;
    const wanted = Math.min(CHUNK, this.total - chunk * CHUNK);
    for (let at = 0; at < wanted; at += 1) if (!lines[at]) return false;
    return true;
  }

  put(entry: LogEntry): void {
    const row = entry.seq - 1;
    const chunk = Math.floor(row / CHUNK);
    let lines = this.#chunks.get(chunk);
    if (!lines) this.#chunks.set(chunk, (lines = []));
    lines[row % CHUNK] = entry;
  }

  async #load(chunk: number): Promise<void> {
    const control = new AbortController();
    this.#loading.set(chunk, control);
    const last = Math.min((chunk + 1) * CHUNK, this.total);
    try {
      const headers = { 'last-event-id': String(chunk * CHUNK) };
      for await (const event of getEvents(logStreamPath(this.id), { headers, signal: control.signal })) {
        if (event.event !== 'logEntry') break;
        const entry = JSON.parse(event.data) as LogEntry;
        this.put(entry);
        if (entry.seq >= last) break;
      }
      this.isLost = false;
    } catch {
      if (!control.signal.aborted) this.isLost = true;
      // Whoever shows these rows asks again as soon as the version changes: not at once, while the server is away.
      await pause(RETRY_MS, control.signal);
    } finally {
      control.abort();
      this.#loading.delete(chunk);
      this.version += 1;
    }
  }

  async *scan(signal: AbortSignal): AsyncGenerator<{ firstRow: number; entries: LogEntry[] }> {
    let sinceToken: string | undefined;
    for (;;) {
      const page = await listLog(this.id, { sinceToken, limit: SCAN_PAGE }, signal);
      const first = page.entries[0];
      if (!first) return;
      yield { firstRow: first.seq - 1, entries: page.entries };
      sinceToken = page.nextToken;
    }
  }

  async follow(signal: AbortSignal): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      await seen(signal);
      if (signal.aborted) return;
      try {
        if (this.total === 0) this.total = (await listLog(this.id, { limit: 1 }, signal)).lastSeq ?? 0;
        if (await this.#stream(signal)) return;
        this.isLost = false;
        failures = 0;
      } catch {
        if (signal.aborted) return;
        this.isLost = true;
        failures += 1;
      }
      await pause(backoff(failures, 500), signal);
    }
  }

  /** Reads new lines. Says whether the log is over; else it ended because the connection did, or because nobody looks. */
  async #stream(outer: AbortSignal): Promise<boolean> {
    const control = new AbortController();
    const stop = () => control.abort();
    const look = () => document.hidden && control.abort();
    outer.addEventListener('abort', stop);
    document.addEventListener('visibilitychange', look);
    let newest = this.total;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const show = () => {
      timer = undefined;
      this.total = newest;
      this.version += 1;
    };
    try {
      const headers = { 'last-event-id': String(this.total) };
      for await (const event of getEvents(logStreamPath(this.id), { headers, signal: control.signal })) {
        this.isLost = false;
        if (event.event === 'status' || event.event === 'end') return true;
        if (event.event !== 'logEntry') continue;
        const entry = JSON.parse(event.data) as LogEntry;
        this.put(entry);
        newest = entry.seq;
        timer ??= setTimeout(show, FRAME_MS);
      }
      return false;
    } catch (error) {
      if (control.signal.aborted) return false;
      throw error;
    } finally {
      outer.removeEventListener('abort', stop);
      document.removeEventListener('visibilitychange', look);
      if (timer !== undefined) clearTimeout(timer);
      if (newest !== this.total) show();
    }
  }
}
