import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { LogEntry } from '../src/api/types';
import { marked, pieces, plainText } from '../src/run/log/ansi';
import { FilteredLog, MOST_PAGES } from '../src/run/log/filtered.svelte';
import { LogSearch } from '../src/run/log/search.svelte';
import { Recent } from '../src/run/log/source';
import { CHUNK, MOST_CHUNKS, WholeLog } from '../src/run/log/whole.svelte';

// A log of the server: lines are made up from their number, so that a million of them need no memory.
let length = 0;
let isOver = true;
const line = (seq: number): LogEntry => ({
  seq, timestamp: '2026-01-01T00:00:00Z', message: `line ${seq}`, task: seq % 10 === 0 ? 'tenth' : 'other', attempt: 1, stream: 'stdout',
});

function page(query: URLSearchParams) {
  const from = Number(query.get('sinceToken') ?? 0);
  const limit = Number(query.get('limit') ?? 200);
  const entries: LogEntry[] = [];
  let seq = from;
  while (seq < length && entries.length < limit && seq < from + 5000) {
    seq += 1;
    if (!query.get('task') || line(seq).task === query.get('task')) entries.push(line(seq));
  }
  return { entries, nextToken: String(seq), throughSeq: seq, lastSeq: length };
}

function events(after: number): ReadableStream<Uint8Array> {
  let seq = after;
  return new ReadableStream({
    pull(control) {
      let text = '';
      for (let n = 0; n < 100 && seq < length; n += 1) {
        seq += 1;
        text += `event: logEntry\nid: ${seq}\ndata: ${JSON.stringify(line(seq))}\n\n`;
      }
      if (text) return control.enqueue(new TextEncoder().encode(text));
      if (isOver) control.enqueue(new TextEncoder().encode('event: status\ndata: {}\n\n'));
      control.close();
    },
  });
}

beforeEach(() => {
  [length, isOver] = [0, true];
  vi.stubGlobal('fetch', async (address: string, init: RequestInit) => {
    const url = new URL(address, 'http://server');
    if (!url.pathname.endsWith('/stream')) return new Response(JSON.stringify(page(url.searchParams)));
    return new Response(events(Number((init.headers as Record<string, string>)['last-event-id'])));
  });
});
afterEach(() => vi.unstubAllGlobals());

const until = (holds: () => boolean) => vi.waitFor(() => expect(holds()).toBe(true), { timeout: 5000 });

describe('a whole log', () => {
  it('shows any part of a million lines, and keeps few of them', async () => {
    length = 1_000_000;
    const log = new WholeLog('r');
    await log.follow(new AbortController().signal);
    expect(log.total).toBe(1_000_000);
    for (let row = 0; row < 1_000_000; row += 9973) {
      log.ensure(row, row + 40);
      await until(() => log.get(row) !== undefined);
      expect(log.get(row)?.seq).toBe(row + 1);
      expect(log.chunksKept).toBeLessThanOrEqual(MOST_CHUNKS);
    }
  }, 30_000);

  it('gives up the parts that somebody scrolled past', async () => {
    length = 100_000;
    const log = new WholeLog('r');
    await log.follow(new AbortController().signal);
    const signals: AbortSignal[] = [];
    vi.stubGlobal('fetch', (_: string, init: RequestInit) => {
      signals.push(init.signal as AbortSignal);
      return new Promise(() => undefined);
    });
    for (let row = 0; row < 100_000; row += CHUNK) {
      log.ensure(row, row + 40);
      await Promise.resolve();
    }
    await until(() => signals.length === 200);
    expect(signals.filter((signal) => !signal.aborted)).toHaveLength(1);
  });

  it('goes on where it was when lines come', async () => {
    [length, isOver] = [CHUNK - 3, false];
    const log = new WholeLog('r');
    const control = new AbortController();
    const done = log.follow(control.signal);
    await until(() => log.total === CHUNK - 3);
    length = CHUNK + 5;
    await until(() => log.total === CHUNK + 5);
    log.ensure(0, log.total);
    await until(() => log.get(0) !== undefined && log.get(CHUNK + 4) !== undefined);
    isOver = true;
    await done;
  });
});

describe('a filtered log', () => {
  it('has the lines of the filter only, and any of its pages again', async () => {
    length = 300_000;
    const log = new FilteredLog('r', { task: 'tenth' }, () => true);
    await log.follow(new AbortController().signal);
    expect(log.total).toBe(30_000);
    expect(log.pagesKept).toBeLessThanOrEqual(MOST_PAGES);
    for (const row of [0, 29_999, 12_345, 600]) {
      log.ensure(row, row + 1);
      await until(() => log.get(row) !== undefined);
      expect(log.get(row)?.seq).toBe((row + 1) * 10);
    }
  });

  it('keeps few pages over a day of single lines', async () => {
    vi.useFakeTimers();
    try {
      const log = new FilteredLog('r', {}, () => false);
      const control = new AbortController();
      void log.follow(control.signal);
      for (let n = 1; n <= 3000; n += 1) {
        length = n;
        await vi.advanceTimersByTimeAsync(1000);
      }
      expect(log.total).toBe(3000);
      expect(log.pagesKept).toBeLessThanOrEqual(4);
      control.abort();
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('a search', () => {
  it('finds every line with the text, and walks around', async () => {
    length = 25_000;
    const log = new WholeLog('r');
    await log.follow(new AbortController().signal);
    const search = new LogSearch();
    await search.start(log, 'LINE 2499');
    expect(search.hits).toEqual([2498, ...Array.from({ length: 10 }, (_, n) => 24_989 + n)]);
    expect(search.row).toBe(2498);
    search.step(-1);
    expect(search.row).toBe(24_998);
    search.step(1);
    expect(search.row).toBe(2498);
  });

  it('that was replaced by another one says nothing more', async () => {
    length = 5000;
    const log = new WholeLog('r');
    await log.follow(new AbortController().signal);
    const search = new LogSearch();
    const first = search.start(log, 'line');
    const second = search.start(log, 'line 4321');
    await Promise.all([first, second]);
    expect(search.hits).toEqual([4320]);
    expect(search.isBusy).toBe(false);
  });
});

describe('what a task wrote', () => {
  it('has colours where a terminal would have them', () => {
    expect(pieces('a \u001b[1;31mred\u001b[0m b')).toEqual([
      { text: 'a ', classes: '' }, { text: 'red', classes: 'ansi-1 bold' }, { text: ' b', classes: '' },
    ]);
  });

  it('shows what else it would do to a terminal instead of doing it', () => {
    expect(plainText('\u001b[2Jx\u0007\u202e')).toBe('x␇\\u{202e}');
    expect(plainText('10 %\r50 %\r99 %\r')).toBe('99 %');
  });

  it('is marked where the searched text stands', () => {
    expect(marked('Foo food', 'foo').map((part) => [part.text, part.isHit])).toEqual([['Foo', true], [' ', false], ['foo', true], ['d', false]]);
    expect(marked('abc', '')).toEqual([{ text: 'abc', isHit: false }]);
  });
});

it('what was not used for longest is forgotten first', () => {
  const recent = new Recent<number, string>(2);
  recent.set(1, 'a');
  recent.set(2, 'b');
  recent.get(1);
  recent.set(3, 'c');
  expect([recent.has(1), recent.has(2), recent.has(3)]).toEqual([true, false, true]);
});
