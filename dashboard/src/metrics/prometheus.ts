// Reads the text form of Prometheus, as far as our own server writes it.

export interface Sample {
  labels: Record<string, string>;
  value: number;
}

export type Metrics = Map<string, Sample[]>;

const line = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/;
const label = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

function unescape(text: string): string {
  return text.replace(/\\(.)/g, (_, char: string) => (char === 'n' ? '\n' : char));
}

function numberOf(text: string): number {
  if (text === '+Inf') return Infinity;
  if (text === '-Inf') return -Infinity;
  return Number(text);
}

export function parseMetrics(text: string): Metrics {
  const metrics: Metrics = new Map();
  for (const raw of text.split('\n')) {
    if (raw === '' || raw.startsWith('#')) continue;
    const match = line.exec(raw);
    if (!match) continue;
    const [, name = '', inside = '', value = ''] = match;
    const labels: Record<string, string> = {};
    for (const [, key = '', content = ''] of inside.matchAll(label)) labels[key] = unescape(content);
    const samples = metrics.get(name);
    if (samples) samples.push({ labels, value: numberOf(value) });
    else metrics.set(name, [{ labels, value: numberOf(value) }]);
  }
  return metrics;
}

/** The sum of all samples of a name. */
export function total(metrics: Metrics, name: string): number {
  return (metrics.get(name) ?? []).reduce((sum, sample) => sum + sample.value, 0);
}

/** The sums of a name by one of its labels. */
export function byLabel(metrics: Metrics, name: string, key: string): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const { labels, value } of metrics.get(name) ?? []) {
    const group = labels[key] ?? '';
    sums[group] = (sums[group] ?? 0) + value;
  }
  return sums;
}

/** How many observations of a histogram were at most each bound, all label sets together. */
export function buckets(metrics: Metrics, name: string): Map<number, number> {
  const sums = new Map<number, number>();
  for (const { labels, value } of metrics.get(`${name}_bucket`) ?? []) {
    const bound = numberOf(labels.le ?? '+Inf');
    sums.set(bound, (sums.get(bound) ?? 0) + value);
  }
  return sums;
}

/** A quantile of what was observed between two readings of a histogram; null when nothing was. */
export function quantile(before: Map<number, number>, after: Map<number, number>, q: number): number | null {
  const counts = [...after].map(([bound, count]) => ({ bound, count: count - (before.get(bound) ?? 0) }));
  counts.sort((a, b) => a.bound - b.bound);
  const all = counts.at(-1)?.count ?? 0;
  if (all <= 0) return null;
  const wanted = q * all;
  let lowBound = 0;
  let lowCount = 0;
  for (const { bound, count } of counts) {
    if (count >= wanted) {
      if (!Number.isFinite(bound)) return lowBound;
      const share = count === lowCount ? 1 : (wanted - lowCount) / (count - lowCount);
      return lowBound + (bound - lowBound) * share;
    }
    lowBound = bound;
    lowCount = count;
  }
  return lowBound;
}
