import { describe, expect, it } from 'vitest';
import type { RunSummary } from '../src/api/types';
import { fits, filterOf, hasText, noFilter, queryOf } from '../src/runs/filter';
import { MOST_ROWS, RunWindow } from '../src/runs/window';

const run = (id: string, updated_at: number, status = 'RUNNING'): RunSummary => ({ run_id: id, flow_name: 'f', status, updated_at });
const ids = (window: RunWindow) => window.rows.map((row) => row.run_id);
const all = () => true;

describe('the window of runs', () => {
  it('puts what changed at the head, once', () => {
    const window = new RunWindow();
    window.reset([run('b', 2), run('a', 1)]);
    expect(window.take([run('a', 3, 'COMPLETED'), run('c', 2.5)], all, false)).toBe(true);
    expect(ids(window)).toEqual(['a', 'c', 'b']);
    expect(window.rows[0]?.status).toBe('COMPLETED');
  });

  it('says that nothing changed when it is told again what it knows', () => {
    const window = new RunWindow();
    window.reset([run('a', 1)]);
    expect(window.take([run('a', 1)], all, false)).toBe(false);
  });

  it('never goes back to an older state', () => {
    const window = new RunWindow();
    window.reset([run('a', 5, 'COMPLETED')]);
    window.take([run('a', 4, 'COMPLETED')], all, false);
    expect(window.rows[0]?.updated_at).toBe(5);
  });

  it('lets go of a run that does not fit any more', () => {
    const window = new RunWindow();
    const running = (row: RunSummary) => fits(row, { ...noFilter, status: 'RUNNING' }, 0);
    window.reset([run('b', 2), run('a', 1)]);
    window.take([run('a', 3, 'FAILED')], running, false);
    expect(ids(window)).toEqual(['b']);
  });

  it('moves nothing while somebody reads, and counts what waits', () => {
    const window = new RunWindow();
    window.reset([run('b', 2), run('a', 1)]);
    window.take([run('a', 3, 'FAILED'), run('c', 4)], all, true);
    expect(ids(window)).toEqual(['b', 'a']);
    expect(window.rows[1]?.status).toBe('FAILED');
    expect(window.heldCount).toBe(2);
  });

  it('drops its head when somebody scrolls far down, and says so', () => {
    const window = new RunWindow();
    window.reset([run('new', 9)]);
    window.append(Array.from({ length: MOST_ROWS }, (_, n) => run(`old-${n}`, 8 - n / MOST_ROWS)));
    expect(window.rows).toHaveLength(MOST_ROWS);
    expect(ids(window)).not.toContain('new');
    expect(window.isDetached).toBe(true);
    window.take([run('newer', 10)], all, false);
    expect(ids(window)).not.toContain('newer');
    expect(window.heldCount).toBe(1);
  });

  it('stays small over 10,000 updates, read or not', () => {
    for (const isHolding of [false, true]) {
      const window = new RunWindow();
      window.reset([run('first', 0)]);
      for (let n = 1; n <= 10_000; n += 1) {
        window.take([run(`run-${n}`, n), run(`run-${n - 1}`, n - 0.5, 'COMPLETED')], all, isHolding);
        expect(window.rows.length).toBeLessThanOrEqual(MOST_ROWS);
        expect(window.heldCount).toBeLessThanOrEqual(MOST_ROWS);
      }
      if (!isHolding) expect(window.rows[0]?.run_id).toBe('run-10000');
    }
  });
});

describe('the filter', () => {
  it('survives the address', () => {
    const filter = { status: 'FAILED', flow: 'a b', tag: 'gpu', text: 'x', time: '24h' };
    expect(filterOf(queryOf(filter))).toEqual(filter);
    expect(filterOf({ time: 'constructor' }).time).toBe('');
  });

  it('finds every word, wherever it stands', () => {
    const row: RunSummary = { ...run('0af1', 1), tags: ['Nightly'], error: 'Connection refused' };
    expect(hasText(row, 'refused NIGHT')).toBe(true);
    expect(hasText(row, 'refused weekly')).toBe(false);
  });

  it('counts time from now', () => {
    expect(fits(run('a', 100), { ...noFilter, time: '15m' }, 999)).toBe(true);
    expect(fits(run('a', 100), { ...noFilter, time: '15m' }, 1001)).toBe(false);
  });
});
