// When each attempt of each node ran, read from the events.
import type { SlimEvent } from './events.svelte';

export interface Bar {
  attempt: number;
  start: number;
  /** Null while it goes on. */
  end: number | null;
  status: string;
  error: string | null;
  worker: string | null;
}

export interface Lane {
  node: string;
  bars: Bar[];
}

const endings: Record<string, string> = {
  NODE_SUCCEEDED: 'SUCCEEDED', NODE_FAIL_REPORTED: 'FAILED', NODE_FAILED: 'FAILED', NODE_CANCELED: 'CANCELED',
};

/** How the run ended, for bars whose own end no event tells: a loop that a failure left open, for example. */
export interface Ending {
  at: number;
  statusOf: (node: string) => string | undefined;
}

/** A lane for each node that started, in the order in which they did. */
export function lanesOf(events: readonly SlimEvent[], ending: Ending | null = null): Lane[] {
  const lanes = new Map<string, Lane>();
  const close = (lane: Lane, at: number, status: string, error: string | null) => {
    const open = lane.bars.at(-1);
    if (!open || open.end !== null) return;
    open.end = at;
    // A wait stays a wait in the picture, however it was answered.
    if (open.status === 'RUNNING' || status === 'CANCELED') open.status = status;
    open.error = error;
  };
  for (const event of events) {
    if (event.node === null) continue;
    let lane = lanes.get(event.node);
    if (event.type === 'NODE_STARTED') {
      if (!lane) lanes.set(event.node, (lane = { node: event.node, bars: [] }));
      close(lane, event.at, 'FAILED', null);
      lane.bars.push({ attempt: event.attempt ?? 1, start: event.at, end: null, status: 'RUNNING', error: null, worker: event.worker });
    } else if (event.type === 'NODE_WAITING' || (lane && event.type === 'NODE_RESUMED')) {
      // A question to a person waits without having started.
      if (!lane) lanes.set(event.node, (lane = { node: event.node, bars: [] }));
      const attempt = lane.bars.at(-1)?.attempt ?? 1;
      close(lane, event.at, 'SUCCEEDED', null);
      const status = event.type === 'NODE_WAITING' ? 'WAITING' : 'RUNNING';
      lane.bars.push({ attempt, start: event.at, end: null, status, error: null, worker: event.worker });
    } else if (lane && event.type in endings) {
      close(lane, event.at, endings[event.type] ?? 'FAILED', event.error);
    }
  }
  if (ending) for (const lane of lanes.values()) close(lane, ending.at, ending.statusOf(lane.node) ?? 'CANCELED', null);
  // Steps from one state to the next take no time and would be drawn as specks.
  for (const lane of lanes.values()) {
    const visible = lane.bars.filter((bar) => bar.end === null || bar.end > bar.start);
    if (visible.length > 0) lane.bars = visible;
  }
  return [...lanes.values()];
}

/** The time that lanes cover. */
export function spanOf(lanes: readonly Lane[], now: number): { start: number; end: number } {
  let start = Infinity;
  let end = -Infinity;
  for (const { bars } of lanes) {
    for (const bar of bars) {
      start = Math.min(start, bar.start);
      end = Math.max(end, bar.end ?? now);
    }
  }
  if (!Number.isFinite(start)) return { start: now, end: now + 1 };
  return { start, end: Math.max(end, start + 0.001) };
}

/** Round marks between 0 and a length, at most so many. */
export function ticksOf(seconds: number, most = 6): number[] {
  const steps = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400];
  const step = steps.find((one) => seconds / one <= most) ?? Math.ceil(seconds / most / 86_400) * 86_400;
  const ticks: number[] = [];
  for (let at = 0; at <= seconds * 1.0001; at += step) ticks.push(at);
  return ticks;
}
