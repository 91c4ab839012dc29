// One run, live: snapshots come by themselves, and whatever belongs to a new one is fetched after it.
import { getExecution, getExplanation, getPlan, getRun, watchPath } from '../api/calls';
import { ApiError, getEvents } from '../api/client';
import type { Execution, Explanation, Plan, RunSnapshot } from '../api/types';
import { backoff, pause, poll, seen, whileSeen } from '../lib/poll';
import { isEnded } from '../lib/status';

/** Changes that come faster than this are shown together. */
const CALM_MS = 150;
const WATCH_SEC = 300;
/** Signs of life are no changes, so the stream does not tell them. Without them a quiet run would look STALE. */
const SIGN_OF_LIFE_MS = 5000;

export class RunFeed {
  snapshot = $state.raw<RunSnapshot | null>(null);
  execution = $state.raw<Execution | null>(null);
  plan = $state.raw<Plan | null>(null);
  explanation = $state.raw<Explanation | null>(null);
  /** The plan was asked for; there may be none. */
  isPlanKnown = $state(false);
  isMissing = $state(false);
  problem = $state('');

  #control = new AbortController();
  #lastId: string | null = null;
  #isRefreshing = false;
  #isOutdated = false;

  constructor(readonly id: string) {}

  follow(): () => void {
    void this.#run();
    const stop = poll(SIGN_OF_LIFE_MS, () => this.#hearOfIt());
    return () => {
      stop();
      this.#control.abort();
    };
  }

  async #run(): Promise<void> {
    const { signal } = this.#control;
    let failures = 0;
    while (!signal.aborted) {
      await seen(signal);
      if (signal.aborted) return;
      try {
        await this.#watch(signal);
        failures = 0;
        if (this.snapshot && isEnded(this.snapshot.status)) return;
      } catch (error) {
        if (error instanceof ApiError && (error.status === 404 || error.status === 422)) {
          this.isMissing = true;
          return;
        }
        failures += 1;
        if (!this.snapshot) this.problem = error instanceof Error ? error.message : String(error);
      }
      await pause(backoff(failures, 250), signal);
    }
  }

  async #hearOfIt(): Promise<void> {
    if (!this.snapshot || isEnded(this.snapshot.status)) return;
    const now = await getRun(this.id, this.#control.signal);
    if ((now.version ?? 0) >= (this.snapshot.version ?? 0)) this.snapshot = now;
  }

  /** Reads the stream until it ends, the run does, or the tab is hidden. */
  #watch(outer: AbortSignal): Promise<void> {
    return whileSeen(outer, async (signal) => {
      const headers = this.#lastId === null ? {} : { 'last-event-id': this.#lastId };
      const stream = getEvents(watchPath(this.id), { query: { timeout_sec: WATCH_SEC }, headers, signal });
      for await (const event of stream) {
        if (event.event !== 'snapshot') continue;
        this.#lastId = event.id ?? this.#lastId;
        this.snapshot = (JSON.parse(event.data) as { snapshot: RunSnapshot }).snapshot;
        this.problem = '';
        void this.refresh();
        if (isEnded(this.snapshot.status)) return;
      }
    });
  }

  /** Fetches what belongs to the snapshot. Calls while it is busy are answered by one more round. */
  async refresh(): Promise<void> {
    this.#isOutdated = true;
    if (this.#isRefreshing) return;
    this.#isRefreshing = true;
    try {
      while (this.#isOutdated && !this.#control.signal.aborted) {
        this.#isOutdated = false;
        const [execution, plan, explanation] = await Promise.allSettled([
          getExecution(this.id), getPlan(this.id), getExplanation(this.id),
        ]);
        if (execution.status === 'fulfilled') this.execution = execution.value;
        if (plan.status === 'fulfilled') this.plan = plan.value;
        if (explanation.status === 'fulfilled') this.explanation = explanation.value;
        this.isPlanKnown = true;
        await pause(CALM_MS, this.#control.signal);
      }
    } finally {
      this.#isRefreshing = false;
    }
  }
}
