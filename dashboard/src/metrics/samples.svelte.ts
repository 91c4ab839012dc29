// Readings of /metrics over time. The server keeps no history, so the page collects its own, for as long as it is open.
import { getMetrics } from '../api/calls';
import { clock } from '../lib/clock.svelte';
import { poll } from '../lib/poll';
import { buckets, byLabel, parseMetrics, total } from './prometheus';

export const SAMPLE_SEC = 5;
/** An hour of readings; older ones are dropped. */
export const MOST_SAMPLES = 720;

/** What is kept of one reading: the few figures that are shown, not the text. */
export interface Reading {
  at: number;
  runs: Record<string, number>;
  ended: Record<string, number>;
  queue: Record<string, number>;
  oldest: Record<string, number>;
  letters: Record<string, number>;
  deadLetters: number;
  workers: number;
  streams: number;
  memory: number;
  runTime: Map<number, number>;
  httpTime: Map<number, number>;
}

export function readingOf(text: string, at: number): Reading {
  const metrics = parseMetrics(text);
  return {
    at,
    runs: byLabel(metrics, 'pyoco_runs_total', 'status'),
    ended: byLabel(metrics, 'pyoco_runs_ended_total', 'status'),
    queue: byLabel(metrics, 'pyoco_queue_depth', 'tag'),
    oldest: byLabel(metrics, 'pyoco_queue_oldest_age_seconds', 'tag'),
    letters: byLabel(metrics, 'pyoco_dlq_letters_total', 'reason'),
    deadLetters: total(metrics, 'pyoco_dlq_messages_total'),
    workers: total(metrics, 'pyoco_workers_alive_total'),
    streams: total(metrics, 'pyoco_sse_clients') + total(metrics, 'pyoco_websocket_clients'),
    memory: total(metrics, 'process_resident_memory_bytes'),
    runTime: buckets(metrics, 'pyoco_run_duration_seconds'),
    httpTime: buckets(metrics, 'pyoco_http_request_duration_seconds'),
  };
}

export function keep(readings: readonly Reading[], reading: Reading): Reading[] {
  return [...readings.slice(-(MOST_SAMPLES - 1)), reading];
}

class Samples {
  readings = $state.raw<Reading[]>([]);
  latest = $derived(this.readings.at(-1) ?? null);

  /** Collects while the page is open, on whichever of its pages somebody is. */
  collect(): () => void {
    return poll(SAMPLE_SEC * 1000, async () => {
      this.readings = keep(this.readings, readingOf(await getMetrics(), clock.exact()));
    });
  }
}

export const samples = new Samples();
