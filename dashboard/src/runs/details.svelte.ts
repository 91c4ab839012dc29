// What a summary does not say (how long, how far, why it waits), fetched for the rows in sight only.
import { SvelteMap } from 'svelte/reactivity';
import { getRun } from '../api/calls';
import type { RunSnapshot, RunSummary } from '../api/types';
import { clock } from '../lib/clock.svelte';

const MOST = 300;
const AT_ONCE = 4;
/** Signs of life are no changes, so a run that goes on is looked at again after so long. */
const REFRESH_SEC = 8;

interface Detail {
  snapshot: RunSnapshot;
  fetchedAt: number;
}

export class RowDetails {
  #known = new SvelteMap<string, Detail>();
  #wanted: RunSummary[] = [];
  #busy = new Set<string>();

  of(id: string): RunSnapshot | null {
    return this.#known.get(id)?.snapshot ?? null;
  }

  /** These rows are in sight now. */
  want(rows: RunSummary[]): void {
    this.#wanted = rows;
    this.#pump();
  }

  #isMissing(row: RunSummary): boolean {
    const detail = this.#known.get(row.run_id);
    if (!detail) return true;
    const age = clock.exact() - detail.fetchedAt;
    // A row that changes many times a second is looked at once a second.
    if ((detail.snapshot.updated_at ?? 0) < (row.updated_at ?? 0)) return age > 1 || detail.snapshot.status !== row.status;
    return row.status === 'RUNNING' && age > REFRESH_SEC;
  }

  #pump(): void {
    for (const row of this.#wanted) {
      if (this.#busy.size >= AT_ONCE) return;
      if (!this.#busy.has(row.run_id) && this.#isMissing(row)) void this.#fetch(row.run_id);
    }
  }

  async #fetch(id: string): Promise<void> {
    this.#busy.add(id);
    try {
      // Parameters can be large, and the list does not show them.
      const snapshot = { ...(await getRun(id)), params: null };
      this.#known.delete(id);
      this.#known.set(id, { snapshot, fetchedAt: clock.exact() });
      const oldest = this.#known.keys().next();
      if (this.#known.size > MOST && !oldest.done) this.#known.delete(oldest.value);
    } catch {
      // The row stays without its details; it is asked for again when the rows in sight change.
      return;
    } finally {
      this.#busy.delete(id);
    }
    this.#pump();
  }
}
