// The events of a run, without what they carry: outputs can be large, and are fetched when somebody looks at one.
import { listEvents } from '../api/calls';
import type { ExecutionEvent } from '../api/types';
import { unixOf } from '../lib/format';

const PAGE = 500;
/** More than these are not kept; the oldest go first. */
export const MOST_EVENTS = 10_000;

export interface SlimEvent {
  seq: number;
  type: string;
  at: number;
  node: string | null;
  attempt: number | null;
  worker: string | null;
  error: string | null;
  actor: string;
}

const text = (value: unknown) => (typeof value === 'string' ? value : null);

export function slim(event: ExecutionEvent): SlimEvent {
  const payload = event.payload as Record<string, unknown>;
  const error = payload.error as { message?: unknown } | null | undefined;
  return {
    seq: event.seq,
    type: event.type,
    at: unixOf(event.occurredAt) ?? 0,
    node: text(payload.nodeId),
    attempt: typeof payload.attempt === 'number' ? payload.attempt : null,
    worker: text(payload.workerId),
    error: text(error?.message),
    actor: event.actor.id ?? event.actor.kind,
  };
}

export class RunEvents {
  all = $state.raw<SlimEvent[]>([]);
  lastSeq = $state(0);
  isTruncated = $state(false);
  isLoaded = $state(false);
  #isBusy = false;
  #isOutdated = false;

  constructor(readonly id: string) {}

  /** Fetches what came since the last time. */
  async update(): Promise<void> {
    this.#isOutdated = true;
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      while (this.#isOutdated) {
        this.#isOutdated = false;
        await this.#catchUp();
      }
    } catch {
      // The next snapshot asks again.
    } finally {
      this.#isBusy = false;
    }
  }

  async #catchUp(): Promise<void> {
    let after = this.all.at(-1)?.seq ?? 0;
    for (;;) {
      const page = await listEvents(this.id, after, PAGE);
      this.lastSeq = page.lastSeq;
      if (page.events.length > 0) {
        const all = [...this.all, ...page.events.map(slim)];
        this.isTruncated ||= all.length > MOST_EVENTS;
        this.all = all.slice(-MOST_EVENTS);
        after = page.events.at(-1)?.seq ?? after;
      }
      this.isLoaded = true;
      if (page.next === null || page.next === undefined || page.events.length === 0) return;
    }
  }
}
