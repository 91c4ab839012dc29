import { describe, expect, it } from 'vitest';
import { clientCommand, option, quote } from '../src/lib/cli';
import { formatAge, formatBytes, formatDuration, unixOf } from '../src/lib/format';
import { newId } from '../src/lib/ids';
import { backoff } from '../src/lib/poll';
import { formatPlace, parsePlace } from '../src/lib/router.svelte';
import { contentHeight, HIGHEST_PX, scrollTopOf, sight } from '../src/lib/virtual';

describe('durations', () => {
  it.each([
    [0, '0 ms'], [0.0004, '0 ms'], [0.25, '250 ms'], [0.9996, '1.0 s'], [1.26, '1.3 s'], [9.96, '10 s'], [59.6, '1 min'],
    [61, '1 min 1 s'], [3600, '1 h'], [3661, '1 h 1 min'], [90_000, '1 d 1 h'], [-3, '0 ms'], [Number.NaN, '–'],
  ])('%s s are %s', (seconds, text) => expect(formatDuration(seconds, 'en')).toBe(text));

  it('are Japanese in Japanese', () => {
    expect(formatDuration(61, 'ja')).toBe('1 分 1 秒');
    expect(formatAge(3700, 'ja')).toBe('1 時間');
  });

  it('of ages have one unit', () => {
    expect(formatAge(0, 'en')).toBe('1 s');
    expect(formatAge(5, 'en')).toBe('5 s');
    expect(formatAge(119, 'en')).toBe('1 min');
  });
});

it('bytes are told in the unit that fits', () => {
  expect(formatBytes(512, 'en')).toBe('512 B');
  expect(formatBytes(64 * 1024 * 1024, 'en')).toBe('64 MiB');
});

it('moments are read, and what is none is none', () => {
  expect(unixOf('1970-01-01T00:00:01.5Z')).toBe(1.5);
  expect(unixOf('soon')).toBeNull();
  expect(unixOf(null)).toBeNull();
});

describe('commands', () => {
  it('are safe to paste, whatever a name has in it', () => {
    expect(quote("it's; rm -rf /")).toBe(`'it'\\''s; rm -rf /'`);
    expect(quote('$(x)')).toBe("'$(x)'");
    expect(clientCommand('http://127.0.0.1:8000', 'list', ...option('--flow', 'a b'), ...option('--tag', ''), false)).toBe("pyoco-client list --flow 'a b'");
    expect(clientCommand('https://runs.example', 'waits')).toBe('pyoco-client --server https://runs.example waits');
  });
});

describe('places', () => {
  it('survive the address, whatever is in them', () => {
    const query = { flow: 'a/b?c#d&e', q: '実行 %' };
    expect(parsePlace(formatPlace(['runs', 'x/y'], query))).toEqual({ path: ['runs', 'x/y'], query });
  });

  it('that make no sense are no error', () => {
    expect(parsePlace('#/%E0%A4%A/x')).toEqual({ path: ['%E0%A4%A', 'x'], query: {} });
    expect(parsePlace('')).toEqual({ path: [], query: {} });
  });
});

describe('the rows in sight', () => {
  it('are a few, and where they belong', () => {
    expect(sight(1000, 400, 10_000, 20, 0)).toEqual({ from: 50, to: 70, top: 1000 });
    expect(sight(0, 400, 3, 20)).toEqual({ from: 0, to: 3, top: 0 });
  });

  it('reach both ends of a list that is higher than browsers allow', () => {
    const count = 5_000_000;
    const height = contentHeight(count, 20);
    expect(height).toBe(HIGHEST_PX);
    expect(sight(0, 400, count, 20, 0).from).toBe(0);
    expect(sight(height - 400, 400, count, 20, 0).to).toBe(count);
    for (const row of [0, 1, 1_234_567, count - 20]) {
      expect(Math.abs(sight(scrollTopOf(row, 400, count, 20), 400, count, 20, 0).from - row)).toBeLessThanOrEqual(1);
    }
  });
});

it('whoever fails waits longer, but never for ever', () => {
  expect(backoff(0, 200)).toBe(200);
  for (let failures = 1; failures < 100; failures += 1) expect(backoff(failures, 200)).toBeLessThanOrEqual(12_500);
});

it('ids are UUIDs, and not the same', () => {
  expect(newId()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(newId()).not.toBe(newId());
});
