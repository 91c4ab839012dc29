import { describe, expect, it } from 'vitest';
import type { Explanation, RunSnapshot } from '../src/api/types';
import { lookOf, shownStatus } from '../src/lib/status';
import { lanesOf, spanOf, ticksOf } from '../src/run/attempts';
import type { SlimEvent } from '../src/run/events.svelte';
import { reasonsOf } from '../src/run/reasons';
import { questionOf, suggestedAnswer } from '../src/waits/prompt';

const snapshot = (more: Partial<RunSnapshot> = {}): RunSnapshot => ({
  run_id: 'r', flow_name: 'f', status: 'RUNNING', heartbeat_at: 1000, tasks: { a: 'RUNNING' }, ...more,
});

describe('STALE', () => {
  it('is a running run whose worker was not heard for 30 s, and looks like no failure', () => {
    expect(shownStatus(snapshot(), snapshot(), 1030)).toBe('RUNNING');
    expect(shownStatus(snapshot(), snapshot(), 1030.1)).toBe('STALE');
    expect(lookOf('STALE')).not.toBe(lookOf('FAILED'));
  });

  it('is never guessed from a list, and never said of what does not run', () => {
    expect(shownStatus(snapshot(), null, 9999)).toBe('RUNNING');
    for (const status of ['PENDING', 'FAILED', 'COMPLETED', 'CANCELLING']) {
      expect(shownStatus(snapshot({ status }), snapshot({ status }), 9999)).toBe(status);
    }
  });

  it('is not a run that waits for a person: nobody holds it', () => {
    const waiting = snapshot({ waiting: [{ node_id: 'a', since: 990 }] });
    expect(shownStatus(waiting, waiting, 9999)).toBe('WAITING');
    const busy = snapshot({ waiting: [{ node_id: 'a', since: 990 }], tasks: { a: 'RUNNING', b: 'RUNNING' } });
    expect(shownStatus(busy, busy, 1001)).toBe('RUNNING');
  });
});

describe('the reasons', () => {
  it('are the server’s, unless they are of another state', () => {
    const explanation: Explanation = {
      run_id: 'r', status: 'RUNNING', summary: '', hint: null,
      reasons: [{ code: 'retry_pause', message: 'm', node_id: 'a', since: null, until: 5 }],
    };
    expect(reasonsOf(snapshot(), explanation, 1001)[0]?.code).toBe('retry_pause');
    expect(reasonsOf(snapshot({ status: 'FAILED' }), explanation, 1001)[0]?.code).toBe('failed');
  });

  it('are read from the snapshot where the server gives none', () => {
    const lonely = snapshot({ status: 'PENDING', waiting: [{ reason: 'no_worker', tag: 'gpu', message: 'no live worker' }] });
    expect(reasonsOf(lonely, null, 0).map((reason) => reason.code)).toEqual(['no_worker']);
    expect(reasonsOf(snapshot(), null, 5000)[0]?.code).toBe('stale');
    expect(reasonsOf(snapshot({ status: 'PENDING' }), null, 0)[0]?.code).toBe('queued');
  });
});

describe('the timeline', () => {
  let seq = 0;
  const event = (type: string, at: number, node: string, attempt: number | null = null): SlimEvent => ({
    seq: (seq += 1), type, at, node, attempt, worker: 'w', error: type.includes('FAIL') ? 'no' : null, actor: 'w',
  });

  it('has a bar for each attempt', () => {
    const [lane] = lanesOf([
      event('NODE_STARTED', 1, 'a', 1), event('NODE_FAIL_REPORTED', 2, 'a'), event('NODE_STARTED', 3, 'a', 2), event('NODE_SUCCEEDED', 5, 'a'),
    ]);
    expect(lane?.bars.map((bar) => [bar.attempt, bar.start, bar.end, bar.status])).toEqual([[1, 1, 2, 'FAILED'], [2, 3, 5, 'SUCCEEDED']]);
  });

  it('shows a wait, also of a node that never started', () => {
    const [lane] = lanesOf([event('NODE_WAITING', 1, 'ask'), event('NODE_RESUMED', 9, 'ask'), event('NODE_SUCCEEDED', 9, 'ask')]);
    expect(lane?.bars.map((bar) => [bar.start, bar.end, bar.status])).toEqual([[1, 9, 'WAITING']]);
  });

  it('leaves open what goes on, and closes it when the run has ended', () => {
    const events = [event('NODE_STARTED', 1, 'loop', 1)];
    expect(lanesOf(events)[0]?.bars[0]?.end).toBeNull();
    expect(spanOf(lanesOf(events), 7)).toEqual({ start: 1, end: 7 });
    expect(lanesOf(events, { at: 4, statusOf: () => 'FAILED' })[0]?.bars[0]).toMatchObject({ end: 4, status: 'FAILED' });
  });

  it('has few marks, whatever the length', () => {
    for (const length of [0.0005, 0.03, 1, 59, 3600, 86_400, 86_400 * 400]) {
      expect(ticksOf(length).length).toBeGreaterThan(0);
      expect(ticksOf(length).length).toBeLessThanOrEqual(8);
    }
  });
});

it('a prompt may be anything', () => {
  expect(questionOf('Go?')).toBe('Go?');
  expect(questionOf({ title: 'Go?' })).toBe('Go?');
  expect(questionOf([1, null])).toBe('');
  expect(suggestedAnswer({ answer: { ok: 1 } })).toEqual({ ok: 1 });
  expect(suggestedAnswer(null)).toEqual({ approved: true });
});
