import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RunSummary } from '../src/api/types';
import { noFilter } from '../src/runs/filter';
import { LiveRuns } from '../src/runs/live.svelte';

// A server with a list, as the API describes it: newest change first, `updated_after`, pages.
let stored: RunSummary[] = [];
let asked: URLSearchParams[] = [];
// Those who watch all runs.
let watching: ReadableStreamDefaultController<Uint8Array>[] = [];

/** Stores runs and says so to those who watch. */
function change(runs: RunSummary[]): void {
  stored = runs;
  for (const stream of watching) stream.enqueue(new TextEncoder().encode('event: changed\ndata: {"ts": 1}\n\n'));
}

function serve(url: string): Response {
  if (new URL(url, 'http://server').pathname !== '/runs/watch') return new Response(JSON.stringify(answer(url)));
  return new Response(new ReadableStream<Uint8Array>({ start: (stream) => void watching.push(stream) }));
}

function answer(url: string): unknown {
  const query = new URL(url, 'http://server').searchParams;
  asked.push(query);
  const limit = Number(query.get('limit') ?? 50);
  const from = Number(query.get('cursor') ?? 0);
  const found = stored
    .filter((run) => (run.updated_at ?? 0) > Number(query.get('updated_after') ?? 0))
    .filter((run) => !query.get('status') || run.status === query.get('status'))
    .sort((a, b) => (b.updated_at ?? 0) - (a.updated_at ?? 0));
  const items = found.slice(from, from + limit);
  return { items, next_cursor: from + limit < found.length ? String(from + limit) : null };
}

const run = (id: string, updated_at: number, status = 'RUNNING'): RunSummary => ({ run_id: id, flow_name: 'f', status, updated_at });

beforeEach(() => {
  vi.useFakeTimers();
  [stored, asked, watching] = [[], [], []];
  vi.stubGlobal('fetch', async (url: string) => serve(url));
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe('the live list', () => {
  it('shows a change within 300 ms', async () => {
    stored = [run('a', 1)];
    const live = new LiveRuns();
    await live.show(noFilter);
    const stop = live.follow();
    await vi.advanceTimersByTimeAsync(500);
    const before = asked.length;
    await vi.advanceTimersByTimeAsync(1000);
    expect(asked.length).toBe(before);
    change([run('a', 2, 'COMPLETED')]);
    await vi.advanceTimersByTimeAsync(300);
    expect(live.rows[0]?.status).toBe('COMPLETED');
    stop();
  });

  it('finds a change that nobody told it of a little later', async () => {
    stored = [run('a', 1)];
    const live = new LiveRuns();
    await live.show(noFilter);
    const stop = live.follow();
    await vi.advanceTimersByTimeAsync(500);
    stored = [run('a', 2, 'COMPLETED')];
    await vi.advanceTimersByTimeAsync(2500);
    expect(live.rows[0]?.status).toBe('COMPLETED');
    stop();
  });

  it('sees a change although another gateway, whose clock is ahead, stamped one before', async () => {
    const now = Date.now() / 1000;
    stored = [run('ahead', now + 600), run('a', now - 5)];
    const live = new LiveRuns();
    await live.show(noFilter);
    const stop = live.follow();
    await vi.advanceTimersByTimeAsync(1000);
    change([run('ahead', now + 600), run('a', now + 1, 'FAILED')]);
    await vi.advanceTimersByTimeAsync(500);
    expect(live.rows.find((row) => row.run_id === 'a')?.status).toBe('FAILED');
    stop();
  });

  it('notices that a run left the status it is filtered by', async () => {
    stored = [run('b', 2), run('a', 1)];
    const live = new LiveRuns();
    await live.show({ ...noFilter, status: 'RUNNING' });
    const stop = live.follow();
    await vi.advanceTimersByTimeAsync(500);
    change([run('b', 3, 'FAILED'), run('a', 1)]);
    await vi.advanceTimersByTimeAsync(500);
    expect(live.rows.map((row) => row.run_id)).toEqual(['a']);
    expect(asked.some((query) => query.has('updated_after') && query.get('updated_after') !== '0' && query.has('status'))).toBe(false);
    stop();
  });

  it('loads the head again when more changed than an answer holds', async () => {
    stored = [run('old', 1)];
    const live = new LiveRuns();
    await live.show(noFilter);
    const stop = live.follow();
    await vi.advanceTimersByTimeAsync(500);
    change(Array.from({ length: 500 }, (_, n) => run(`n${n}`, 10 + n)));
    await vi.advanceTimersByTimeAsync(500);
    expect(live.rows[0]?.run_id).toBe('n499');
    expect(live.rows.length).toBeLessThanOrEqual(200);
    stop();
  });

  it('looks through pages for a text, and stops after some', async () => {
    stored = Array.from({ length: 5000 }, (_, n) => ({ ...run(`n${n}`, n + 1), error: n === 3500 ? 'needle' : null }));
    const live = new LiveRuns();
    await live.show({ ...noFilter, text: 'needle' });
    expect(live.rows.map((row) => row.run_id)).toEqual(['n3500']);
    expect(live.scanned).toBe(2000);
    expect(live.hasMore).toBe(true);
  });

  it('heals by itself after the server was away', async () => {
    const live = new LiveRuns();
    vi.stubGlobal('fetch', async () => Promise.reject(new TypeError('refused')));
    await live.show(noFilter);
    expect(live.problem).toBe('refused');
    const stop = live.follow();
    await vi.advanceTimersByTimeAsync(3000);
    stored = [run('a', 1)];
    vi.stubGlobal('fetch', async (url: string) => serve(url));
    await vi.advanceTimersByTimeAsync(15_000);
    expect(live.problem).toBe('');
    expect(live.rows).toHaveLength(1);
    stop();
  });
});
