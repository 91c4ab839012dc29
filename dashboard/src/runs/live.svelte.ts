// The list, kept up to date: loads pages, asks for what changed, and puts it into the window.
import { listRuns, watchAllPath } from '../api/calls';
import { getEvents } from '../api/client';
import type { RunSummary } from '../api/types';
import { clock } from '../lib/clock.svelte';
import { backoff, pause, poll, seen, whileSeen } from '../lib/poll';
import { fits, noFilter, spans, type RunFilter } from './filter';
import { RunWindow } from './window';

const PAGE = 100;
/** While somebody searches for a text: the server cannot, so larger pages are looked through, so many at a time. */
const SEARCH_PAGE = 200;
const SEARCH_PAGES = 10;
const WATCH_SEC = 300;
/** The server says when something has changed. Should it not, e.g. behind a proxy that keeps streams back, this finds it. */
const INTERVAL_MS = 2000;
/** Changes are asked for from a little before the newest that is known: stamps are given before rows can be seen. */
const OVERLAP_SEC = 2;

export class LiveRuns {
  rows = $state.raw<RunSummary[]>([]);
  isLoading = $state(true);
  problem = $state('');
  hasMore = $state(false);
  heldCount = $state(0);
  isDetached = $state(false);
  /** How many runs were looked through for a text; 0 when none is searched for. */
  scanned = $state(0);
  isPaused = $state(false);
  /** The reader has scrolled away from the top: rows keep their places. */
  isHolding = false;

  #window = new RunWindow();
  #filter: RunFilter = noFilter;
  #cursor: string | null = null;
  #newest = 0;
  #loading: AbortController | null = null;

  /** Begins to follow; ends with the returned function. */
  follow(): () => void {
    const control = new AbortController();
    void this.#listen(control.signal);
    const stop = poll(INTERVAL_MS, (signal) => this.#askForChanges(signal));
    return () => {
      stop();
      control.abort();
      this.#loading?.abort();
    };
  }

  /** Asks for changes whenever the server says that there are some. */
  async #listen(outer: AbortSignal): Promise<void> {
    let failures = 0;
    while (!outer.aborted) {
      await seen(outer);
      try {
        await whileSeen(outer, async (signal) => {
          for await (const event of getEvents(watchAllPath, { query: { timeout_sec: WATCH_SEC }, signal })) {
            failures = 0;
            // What fails is asked for again by the poll.
            if (event.event === 'changed') await this.#askForChanges(signal).catch(() => undefined);
          }
        });
      } catch {
        failures += 1;
      }
      await pause(backoff(failures, 250), outer);
    }
  }

  /** Shows what fits this filter, from the newest on. */
  async show(filter: RunFilter): Promise<void> {
    this.#filter = filter;
    await this.reload(PAGE);
  }

  async reload(atLeast = PAGE): Promise<void> {
    this.#loading?.abort();
    const control = new AbortController();
    this.#loading = control;
    this.isLoading = true;
    try {
      this.#cursor = null;
      this.scanned = 0;
      const rows = await this.#pages(Math.min(atLeast, 1000), control.signal);
      if (control.signal.aborted) return;
      this.#window.reset(rows);
      this.#newest = Math.max(this.#newest, ...rows.slice(0, 1).map((row) => row.updated_at ?? 0));
      this.problem = '';
      this.#publish();
    } catch (error) {
      if (!control.signal.aborted) this.problem = error instanceof Error ? error.message : String(error);
    } finally {
      if (!control.signal.aborted) {
        this.isLoading = false;
        this.#loading = null;
      }
    }
  }

  async more(): Promise<void> {
    if (this.#loading || !this.hasMore) return;
    if (this.#window.isCut) return this.reload(this.rows.length + PAGE);
    const control = new AbortController();
    this.#loading = control;
    try {
      const rows = await this.#pages(PAGE, control.signal);
      if (control.signal.aborted) return;
      this.#window.append(rows);
      this.#publish();
    } catch {
      // The end of the list stays where it is; the next scroll asks again.
    } finally {
      if (!control.signal.aborted) this.#loading = null;
    }
  }

  /** Pages from the cursor on, until there are enough rows that fit, or enough was looked through. */
  async #pages(enough: number, signal: AbortSignal): Promise<RunSummary[]> {
    const filter = this.#filter;
    const found: RunSummary[] = [];
    for (let page = 0; page < SEARCH_PAGES && found.length < enough; page += 1) {
      const answer = await listRuns(
        {
          ...this.#fixed(),
          ...(filter.status && { status: filter.status }),
          limit: filter.text ? SEARCH_PAGE : Math.min(200, enough),
          ...(this.#cursor && { cursor: this.#cursor }),
        },
        signal,
      );
      found.push(...answer.items.filter((run) => fits(run, filter, clock.exact())));
      if (filter.text) this.scanned += answer.items.length;
      this.#cursor = answer.next_cursor ?? null;
      if (!this.#cursor) break;
    }
    return found;
  }

  /** What the server can sort out in a question for changes: only what never changes in a run. */
  #fixed(): { flow?: string; tag?: string; updated_after: number } {
    const { flow, tag, time } = this.#filter;
    const span = spans[time];
    return { ...(flow && { flow }), ...(tag && { tag }), updated_after: span === undefined ? 0 : clock.exact() - span };
  }

  async #askForChanges(signal: AbortSignal): Promise<void> {
    if (this.isPaused || this.#loading) return;
    if (this.problem) return this.reload();
    const fixed = this.#fixed();
    // Never from the future: a gateway whose clock is ahead must not hide what the others stamp meanwhile.
    const since = Math.max(fixed.updated_after, Math.min(this.#newest, clock.exact()) - OVERLAP_SEC);
    const answer = await listRuns({ ...fixed, updated_after: since, limit: 200 }, signal);
    if (signal.aborted || this.#loading) return;
    this.#newest = Math.max(this.#newest, answer.items[0]?.updated_at ?? 0);
    // More changed than one answer holds: the head of the list is the shorter way to the truth.
    if (answer.next_cursor && !this.isHolding && !this.#window.isDetached) return this.reload();
    const now = clock.exact();
    if (this.#window.take(answer.items, (run) => fits(run, this.#filter, now), this.isHolding)) this.#publish();
  }

  #publish(): void {
    this.rows = [...this.#window.rows];
    this.hasMore = this.#cursor !== null || this.#window.isCut;
    this.heldCount = this.#window.heldCount;
    this.isDetached = this.#window.isDetached;
  }
}
