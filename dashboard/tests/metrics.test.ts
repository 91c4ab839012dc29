import { describe, expect, it } from 'vitest';
import { buckets, byLabel, parseMetrics, quantile, total } from '../src/metrics/prometheus';
import { keep, MOST_SAMPLES, readingOf, type Reading } from '../src/metrics/samples.svelte';
import { isFlat, levels, quantiles, rates, throughput } from '../src/metrics/series';

const text = (ended: number, slow: number) => `# HELP x y
pyoco_runs_total{status="COMPLETED"} ${ended}
pyoco_runs_ended_total{flow="a\\"b}",status="COMPLETED"} ${ended}
pyoco_runs_ended_total{flow="c",status="COMPLETED"} 1
pyoco_queue_depth{tag="gpu"} 3
pyoco_workers_alive_total 2
pyoco_run_duration_seconds_bucket{le="1.0",flow="c"} ${ended - slow}
pyoco_run_duration_seconds_bucket{le="5.0",flow="c"} ${ended}
pyoco_run_duration_seconds_bucket{le="+Inf",flow="c"} ${ended}
`;

it('the text of Prometheus is read, labels with quotes and braces included', () => {
  const metrics = parseMetrics(text(4, 0));
  expect(metrics.get('pyoco_runs_ended_total')?.[0]).toEqual({ labels: { flow: 'a"b}', status: 'COMPLETED' }, value: 4 });
  expect(byLabel(metrics, 'pyoco_runs_ended_total', 'status')).toEqual({ COMPLETED: 5 });
  expect(total(metrics, 'pyoco_workers_alive_total')).toBe(2);
  expect(total(metrics, 'nothing')).toBe(0);
});

describe('quantiles', () => {
  it('are of what came between two readings', () => {
    const [before, after] = [buckets(parseMetrics(text(10, 0)), 'pyoco_run_duration_seconds'), buckets(parseMetrics(text(20, 10)), 'pyoco_run_duration_seconds')];
    expect(quantile(before, after, 0.5)).toBe(3);
    expect(quantile(after, after, 0.5)).toBeNull();
    expect(quantile(new Map(), new Map(), 0.5)).toBeNull();
  });
});

describe('the series', () => {
  const readings: Reading[] = [readingOf(text(4, 0), 0), readingOf(text(10, 0), 5), readingOf(text(2, 0), 10)];

  it('of counters are rates, also over a restart of the server', () => {
    const { at, lines } = rates(readings, (reading) => reading.ended);
    expect(at).toEqual([5, 10]);
    expect(lines[0]?.values).toEqual([72, 36]);
  });

  it('of runs that ended are known without a counter too, and do not jump when old runs are removed', () => {
    const gauge = (done: number, at: number) => readingOf(`pyoco_runs_total{status="COMPLETED"} ${done}\npyoco_runs_total{status="RUNNING"} 7\n`, at);
    const { lines } = throughput([gauge(10, 0), gauge(15, 60), gauge(3, 120)]);
    expect(lines).toEqual([{ name: 'COMPLETED', values: [5, 0] }]);
    expect(throughput(readings).lines[0]?.values).toEqual([72, 36]);
  });

  it('of levels are the values', () => {
    const series = levels(readings, (reading) => reading.queue);
    expect(series.lines).toEqual([{ name: 'gpu', values: [3, 3, 3] }]);
    expect(isFlat(series)).toBe(false);
    expect(isFlat(levels(readings, (reading) => reading.oldest))).toBe(true);
  });

  it('of quantiles leave gaps where nothing happened', () => {
    const series = quantiles([readings[0] as Reading, readings[0] as Reading], (reading) => reading.runTime, 1);
    expect(series.lines[0]?.values).toEqual([null]);
  });
});

it('an open tab keeps an hour of readings, not a day', () => {
  let kept: Reading[] = [];
  for (let n = 0; n < 10_000; n += 1) kept = keep(kept, { ...readingOf('', n), at: n });
  expect(kept).toHaveLength(MOST_SAMPLES);
  expect(kept.at(-1)?.at).toBe(9999);
});
