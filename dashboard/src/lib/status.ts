// What a status means and how it looks: a colour, a shape, and words, never a colour alone.
import type { RunSnapshot, RunSummary } from '../api/types';

/** The statuses of runs, in the order in which operators look for them. */
export const runStatuses = ['RUNNING', 'PENDING', 'CANCELLING', 'FAILED', 'COMPLETED', 'CANCELLED'] as const;

export const isEnded = (status: string) => status === 'COMPLETED' || status === 'FAILED' || status === 'CANCELLED';

/** A run whose worker was not heard for so long is shown as STALE: `max(30 s, 3 × the heartbeat of 1 s)`. */
export const STALE_AFTER_SEC = 30;

export type Look = 'wait' | 'run' | 'good' | 'bad' | 'stop' | 'odd' | 'ask';

const looks: Record<string, Look> = {
  PENDING: 'wait', READY: 'wait', NOT_REACHED: 'wait', IDLE: 'wait',
  RUNNING: 'run', ACTIVE: 'run',
  COMPLETED: 'good', SUCCEEDED: 'good',
  FAILED: 'bad', DISCONNECTED: 'odd', STALE: 'odd',
  CANCELLING: 'stop', CANCELLED: 'stop', CANCELED: 'stop', STOPPED_GRACEFUL: 'stop',
  WAITING: 'ask',
};

export const lookOf = (status: string): Look => looks[status] ?? 'wait';

/** Whether everything that is open in a run waits for a person: then no worker holds it, and none is missed. */
export function isWaitingForPerson(run: RunSnapshot): boolean {
  const waiting = (run.waiting ?? []).filter((entry) => 'node_id' in entry).length;
  if (waiting === 0) return false;
  return Object.values(run.tasks ?? {}).filter((state) => state === 'RUNNING').length <= waiting;
}

/**
 * The status to show. STALE and WAITING are ours: the server calls both RUNNING. Only a snapshot that was fetched just now can say
 * STALE, because lists are told of changes, and a sign of life is none.
 */
export function shownStatus(run: RunSummary, snapshot: RunSnapshot | null, now: number): string {
  if (run.status !== 'RUNNING' || !snapshot) return run.status;
  if (isWaitingForPerson(snapshot)) return 'WAITING';
  const heard = snapshot.heartbeat_at;
  return typeof heard === 'number' && now - heard > STALE_AFTER_SEC ? 'STALE' : run.status;
}
