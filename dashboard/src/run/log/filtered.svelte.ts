// The lines of one task or stream. The server filters; what is remembered of each page is where it begins, so that it can be fetched
// again when somebody scrolls back to it.
import { listLog } from '../../api/calls';
import type { LogEntry } from '../../api/types';
import { backoff, pause, seen } from '../../lib/poll';
import { Recent, type LogSource } from './source';

export const PAGE = 1000;
export const MOST_PAGES = 20;
const POLL_MS = 1000;

export interface LogFilter {
  task?: string | undefined;
  stream?: string | undefined;
}

interface PagePlace {
  /** Where it begins: the token to ask with; none for the very beginning. */
  token: string | undefined;
  firstRow: number;
  count: number;
}

export class FilteredLog implements LogSource {
  total = $state(0);
  version = $state(0);
  isLost = $state(false);
  #places: PagePlace[] = [];
  #pages = new Recent<number, LogEntry[]>(MOST_PAGES);
  #loading = new Set<number>();

  constructor(
    readonly id: string,
    readonly filter: LogFilter,
    readonly isEnded: () => boolean,
  ) {}

  get pagesKept(): number {
    return this.#pages.size;
  }

  rowOf(seq: number): number {
    for (let index = 0; index < this.#places.length; index += 1) {
      const at = this.#pages.get(index)?.findIndex((entry) => entry.seq === seq) ?? -1;
      if (at >= 0) return (this.#places[index]?.firstRow ?? 0) + at;
    }
    return -1;
  }

  /** The page that has a row: the last one that begins at or before it. */
  #pageOf(row: number): number {
    let low = 0;
    let high = this.#places.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.#places[middle]?.firstRow ?? 0) <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  get(row: number): LogEntry | undefined {
    // Whoever shows the row wants to know when it comes.
    void this.version;
    const page = this.#pageOf(row);
    const place = this.#places[page];
    return place ? this.#pages.get(page)?.[row - place.firstRow] : undefined;
  }

  ensure(from: number, to: number): void {
    if (this.#places.length === 0) return;
    for (let page = this.#pageOf(from); page <= this.#pageOf(Math.max(from, to - 1)); page += 1) {
      if (this.#pages.has(page) || this.#loading.has(page)) continue;
      this.#loading.add(page);
      void this.#fetch(page);
    }
  }

  async #fetch(page: number): Promise<void> {
    try {
      this.#pages.set(page, await this.#load(page));
      this.isLost = false;
    } catch {
      this.isLost = true;
      // Whoever shows these rows asks again as soon as the version changes: not at once, while the server is away.
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    } finally {
      this.#loading.delete(page);
      this.version += 1;
    }
  }

  async #load(page: number): Promise<LogEntry[]> {
    const place = this.#places[page];
    if (!place) return [];
    const entries: LogEntry[] = [];
    let token = place.token;
    // With a filter the server looks at so many lines for one answer: a page may take several.
    while (entries.length < place.count) {
      const answer = await listLog(this.id, { ...this.filter, sinceToken: token, limit: place.count - entries.length });
      entries.push(...answer.entries);
      if (answer.nextToken === token) break;
      token = answer.nextToken;
    }
    return entries;
  }

  async *scan(signal: AbortSignal): AsyncGenerator<{ firstRow: number; entries: LogEntry[] }> {
    for (let page = 0; page < this.#places.length; page += 1) {
      if (signal.aborted) return;
      const entries = this.#pages.get(page) ?? (await this.#load(page));
      yield { firstRow: this.#places[page]?.firstRow ?? 0, entries };
    }
  }

  async follow(signal: AbortSignal): Promise<void> {
    let token: string | undefined;
    let failures = 0;
    while (!signal.aborted) {
      await seen(signal);
      if (signal.aborted) return;
      try {
        // Asked before the request: what ended before it was sent has all of its lines in the answer.
        const wasEnded = this.isEnded();
        const page = await listLog(this.id, { ...this.filter, sinceToken: token, limit: PAGE }, signal);
        if (page.entries.length > 0) this.#add(token, page.entries);
        const isBehind = (page.throughSeq ?? 0) < (page.lastSeq ?? 0);
        token = page.nextToken;
        this.isLost = false;
        failures = 0;
        if (isBehind) continue;
        if (wasEnded) return;
      } catch {
        if (signal.aborted) return;
        this.isLost = true;
        failures += 1;
      }
      await pause(backoff(failures, POLL_MS), signal);
    }
  }

  /** Puts new lines behind the last: into the last page while there is room, so that a day of single lines is not a day of pages. */
  #add(token: string | undefined, entries: LogEntry[]): void {
    const last = this.#places.at(-1);
    const index = this.#places.length - 1;
    const kept = last && this.#pages.get(index);
    if (last && kept && last.count + entries.length <= PAGE) {
      kept.push(...entries);
      last.count += entries.length;
    } else {
      this.#places.push({ token, firstRow: this.total, count: entries.length });
      this.#pages.set(this.#places.length - 1, entries);
    }
    this.total += entries.length;
    this.version += 1;
  }
}
