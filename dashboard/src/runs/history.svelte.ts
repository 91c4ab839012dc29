// How the last runs of a flow ended, for the small bars in the list.
import { SvelteMap } from 'svelte/reactivity';
import { listRuns } from '../api/calls';
import { clock } from '../lib/clock.svelte';

const RUNS = 12;
const MOST_FLOWS = 60;
const REFRESH_SEC = 10;

export class FlowHistory {
  #known = new SvelteMap<string, { statuses: string[]; fetchedAt: number }>();
  #isBusy = false;

  /** Oldest first; nothing while it is not known. */
  of(flow: string): string[] {
    return this.#known.get(flow)?.statuses ?? [];
  }

  /** These flows are in sight. One is asked for at a time: the bars may come late, the rows may not. */
  async want(flows: Iterable<string>): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      for (const flow of flows) {
        const known = this.#known.get(flow);
        if (known && clock.exact() - known.fetchedAt < REFRESH_SEC) continue;
        const { items } = await listRuns({ flow, limit: RUNS });
        this.#known.delete(flow);
        this.#known.set(flow, { statuses: items.map((run) => run.status).reverse(), fetchedAt: clock.exact() });
        const oldest = this.#known.keys().next();
        if (this.#known.size > MOST_FLOWS && !oldest.done) this.#known.delete(oldest.value);
      }
    } catch {
      // No bars, then.
    } finally {
      this.#isBusy = false;
    }
  }
}
