// The runs that are loaded: a window on a list that may have a million. Pure; who fetches is elsewhere.
import type { RunSummary } from '../api/types';

/** More rows than this are never kept, however far somebody scrolls and however long the tab is open. */
export const MOST_ROWS = 2000;
/** What is kept when the window is cut at its end: a few screens. */
export const KEPT_ROWS = 200;

const newestFirst = (a: RunSummary, b: RunSummary) =>
  (b.updated_at ?? 0) - (a.updated_at ?? 0) || (a.run_id < b.run_id ? -1 : a.run_id > b.run_id ? 1 : 0);

export class RunWindow {
  rows: RunSummary[] = [];
  /** Rows were dropped at the head: what is new is not shown until the list is loaded again. */
  isDetached = false;
  /** Rows were dropped at the end: the cursor does not go on behind the last row any more. */
  isCut = false;
  #places = new Map<string, number>();
  /** Changes that wait until the reader wants the order to change. Ids only: the rows are fetched again. */
  #held = new Set<string>();

  get heldCount(): number {
    return this.#held.size;
  }

  /** Starts again with these rows. */
  reset(rows: RunSummary[]): void {
    this.rows = rows.slice(0, MOST_ROWS);
    this.isDetached = false;
    this.isCut = false;
    this.#held.clear();
    this.#index();
  }

  /** Older rows, behind the last. */
  append(rows: RunSummary[]): void {
    const added = rows.filter((row) => !this.#places.has(row.run_id));
    const all = [...this.rows, ...added];
    if (all.length > MOST_ROWS) this.isDetached = true;
    this.rows = all.slice(-MOST_ROWS);
    this.#index();
  }

  /**
   * Takes changes. While `isHolding`, rows keep their places so that nothing moves under the reader's eyes: what is known is changed
   * where it stands, the rest is counted. Says whether anything is different now.
   */
  take(changes: RunSummary[], fits: (run: RunSummary) => boolean, isHolding: boolean): boolean {
    const stays = isHolding || this.isDetached;
    let isChanged = false;
    let isMoved = false;
    const added = new Map<string, RunSummary>();
    for (const run of changes) {
      const place = this.#places.get(run.run_id);
      const known = place === undefined ? undefined : this.rows[place];
      if (place !== undefined && known) {
        if ((known.updated_at ?? 0) >= (run.updated_at ?? 0) && known.status === run.status) continue;
        this.rows[place] = run;
        isChanged = true;
        if (stays) this.#held.add(run.run_id);
        else isMoved = true;
      } else if (fits(run)) {
        if (stays) isChanged = this.#hold(run.run_id) || isChanged;
        else added.set(run.run_id, run);
      }
    }
    if (isMoved || added.size > 0) {
      this.rows = [...this.rows.filter(fits), ...added.values()].sort(newestFirst);
      if (this.rows.length > MOST_ROWS) {
        this.rows.length = KEPT_ROWS;
        this.isCut = true;
      }
      this.#index();
      isChanged = true;
    }
    return isChanged;
  }

  #hold(id: string): boolean {
    const before = this.#held.size;
    // A count beyond this says no more than "many", and must not grow over a day.
    if (before < MOST_ROWS) this.#held.add(id);
    return this.#held.size !== before;
  }

  #index(): void {
    this.#places = new Map(this.rows.map((row, place) => [row.run_id, place]));
  }
}
