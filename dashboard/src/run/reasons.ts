// Why a run is where it is. The server explains it; one that cannot is helped out from the snapshot.
import type { Explanation, Reason, RunSnapshot } from '../api/types';
import { isWaitingForPerson, shownStatus } from '../lib/status';

const reason = (code: string, more: Partial<Reason> = {}): Reason => ({
  code, message: '', node_id: null, since: null, until: null, ...more,
});

export function reasonsOf(run: RunSnapshot, explanation: Explanation | null, now: number): Reason[] {
  // An explanation is fetched a moment after the snapshot: an old one must not contradict what is shown beside it.
  if (explanation && explanation.status === run.status && explanation.reasons.length > 0) return explanation.reasons;
  const reasons: Reason[] = [];
  for (const entry of run.waiting ?? []) {
    if ('reason' in entry) reasons.push(reason('no_worker', { message: entry.message }));
    else if ('node_id' in entry) reasons.push(reason('waiting_for_person', { node_id: entry.node_id, since: entry.since }));
  }
  if (isWaitingForPerson(run)) reasons.push(reason('parked'));
  if (reasons.length > 0) return reasons;
  switch (shownStatus(run, run, now)) {
    case 'PENDING': return [reason('queued', { since: run.updated_at ?? null })];
    case 'RUNNING': return [reason('running', { since: run.start_time ?? null })];
    case 'STALE': return [reason('stale', { since: run.heartbeat_at ?? null })];
    case 'CANCELLING': return [reason('cancelling', { since: run.cancel_requested_at ?? null })];
    case 'FAILED': return [reason('failed', { message: run.error ?? '' })];
    case 'CANCELLED': return [reason('cancelled')];
    case 'COMPLETED': return [reason('completed')];
    default: return [];
  }
}
