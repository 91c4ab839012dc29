// Readings as lines of a chart: one array of moments, one array of values for each line.
import { isEnded } from '../lib/status';
import { quantile } from './prometheus';
import type { Reading } from './samples.svelte';

export interface Line {
  name: string;
  values: (number | null)[];
}

export interface Series {
  at: number[];
  lines: Line[];
}

function namesOf(readings: readonly Reading[], pick: (reading: Reading) => Record<string, number>, most = 6): string[] {
  const sums = new Map<string, number>();
  for (const reading of readings) {
    for (const [name, value] of Object.entries(pick(reading))) sums.set(name, (sums.get(name) ?? 0) + value);
  }
  return [...sums].sort((a, b) => b[1] - a[1]).slice(0, most).map(([name]) => name);
}

/** Values as they were read; one that is not told is nought. */
export function levels(readings: readonly Reading[], pick: (reading: Reading) => Record<string, number>): Series {
  return {
    at: readings.map((reading) => reading.at),
    lines: namesOf(readings, pick).map((name) => ({ name, values: readings.map((reading) => pick(reading)[name] ?? 0) })),
  };
}

/**
 * What grew, as how much it grew by in a minute. A counter that fell belongs to a server that was started again, and counts anew from
 * nought; anything else that fell did not grow.
 */
export function rates(readings: readonly Reading[], pick: (reading: Reading) => Record<string, number>, isCounter = true): Series {
  const later = readings.slice(1);
  return {
    at: later.map((reading) => reading.at),
    lines: namesOf(readings, pick).map((name) => ({
      name,
      values: later.map((reading, index) => {
        const before = readings[index];
        if (!before || reading.at <= before.at) return null;
        const [from, to] = [pick(before)[name] ?? 0, pick(reading)[name] ?? 0];
        const grown = to >= from ? to - from : isCounter ? to : 0;
        return (grown * 60) / (reading.at - before.at);
      }),
    })),
  };
}

/** Quantiles of a histogram over the last readings before each moment. */
export function quantiles(
  readings: readonly Reading[],
  pick: (reading: Reading) => Map<number, number>,
  scale: number,
  window = 12,
): Series {
  const later = readings.slice(1);
  const line = (name: string, q: number): Line => ({
    name,
    values: later.map((reading, index) => {
      const before = readings[Math.max(0, index + 1 - window)];
      const value = before ? quantile(pick(before), pick(reading), q) : null;
      return value === null ? null : value * scale;
    }),
  });
  return { at: later.map((reading) => reading.at), lines: [line('p50', 0.5), line('p95', 0.95)] };
}

/**
 * Runs that ended, per minute. A gateway beside NATS does not count them, because its workers do; there the number of runs in each
 * final status says nearly the same.
 */
export function throughput(readings: readonly Reading[]): Series {
  if (readings.some((reading) => Object.keys(reading.ended).length > 0)) return rates(readings, (reading) => reading.ended);
  const final = ({ runs }: Reading) => Object.fromEntries(Object.entries(runs).filter(([status]) => isEnded(status)));
  return rates(readings, final, false);
}

export const isFlat = (series: Series) => series.lines.every((line) => line.values.every((value) => !value));
