import { afterEach, describe, expect, it, vi } from 'vitest';
import { address, ApiError, errorOf, getEvents, getJson, send } from '../src/api/client';
import { apiKey } from '../src/api/key.svelte';
import { connection } from '../src/lib/connection.svelte';
import { readViews } from '../src/runs/views.svelte';

const json = (body: unknown, status = 200) => new Response(JSON.stringify(body), { status });

afterEach(() => {
  vi.unstubAllGlobals();
  apiKey.set('');
  connection.heard();
});

describe('errors', () => {
  it('are read in both forms of the API', () => {
    expect(errorOf(409, { error: { code: 'COMMAND_REJECTED', message: 'not now' } })).toMatchObject({ message: 'not now', code: 'COMMAND_REJECTED' });
    expect(errorOf(404, { detail: 'run not found' }).message).toBe('run not found');
    expect(errorOf(500, null).message).toBe('HTTP 500');
  });
});

it('addresses leave out what is not given', () => {
  expect(address('/runs', { flow: 'a b', tag: '', cursor: undefined, limit: 5 })).toBe('/runs?flow=a+b&limit=5');
});

describe('the API key', () => {
  it('is asked for at 401, sent as a header, and kept for the tab', async () => {
    const sent: (string | undefined)[] = [];
    vi.stubGlobal('fetch', async (_: string, init: RequestInit) => {
      const key = (init.headers as Record<string, string>)['X-API-Key'];
      sent.push(key);
      return key === 'good' ? json({ ok: true }) : json({ detail: 'no' }, key ? 403 : 401);
    });
    await expect(getJson('/runs')).rejects.toBeInstanceOf(ApiError);
    expect(apiKey.isAskedFor).toBe(true);
    // Whoever asks meanwhile waits for the key instead of collecting refusals.
    const second = getJson('/runs');
    apiKey.set(' bad ');
    await expect(second).rejects.toMatchObject({ status: 403 });
    expect(apiKey).toMatchObject({ isAskedFor: true, wasRefused: true });
    const third = getJson('/runs');
    apiKey.set('good');
    await expect(third).resolves.toEqual({ ok: true });
    expect(sent).toEqual([undefined, 'bad', 'good']);
    expect(sessionStorage.getItem('pyoco.api-key')).toBe('good');
    expect(localStorage.length).toBe(0);
  });

  it('is not asked for again when it may look but not act', async () => {
    apiKey.set('reader');
    vi.stubGlobal('fetch', async () => json({ error: { code: 'FORBIDDEN', message: 'may only look' } }, 403));
    await expect(send('POST', '/runs/x/cancel')).rejects.toMatchObject({ message: 'may only look' });
    expect(apiKey.isAskedFor).toBe(false);
  });
});

it('every command has an idempotency key of its own', async () => {
  const keys: string[] = [];
  vi.stubGlobal('fetch', async (_: string, init: RequestInit) => {
    keys.push((init.headers as Record<string, string>)['x-idempotency-key'] ?? '');
    return json({});
  });
  await send('POST', '/a');
  await send('POST', '/a');
  expect(new Set(keys).size).toBe(2);
});

describe('the connection', () => {
  it('is lost with a request that nobody answers, and found again with the next', async () => {
    vi.stubGlobal('fetch', async () => Promise.reject(new TypeError('refused')));
    await expect(getJson('/runs')).rejects.toThrow('refused');
    expect(connection.isLost).toBe(true);
    vi.stubGlobal('fetch', async () => json({}));
    await getJson('/runs');
    expect(connection.isLost).toBe(false);
  });

  it('is not lost when we leave by ourselves', async () => {
    const control = new AbortController();
    control.abort();
    vi.stubGlobal('fetch', async () => Promise.reject(new DOMException('left', 'AbortError')));
    await expect(getJson('/runs', { signal: control.signal })).rejects.toThrow('left');
    expect(connection.isLost).toBe(false);
  });

  it('is lost with a stream that breaks off', async () => {
    const body = new ReadableStream({ start: (control) => control.error(new TypeError('cut')) });
    vi.stubGlobal('fetch', async () => new Response(body));
    await expect(getEvents('/x').next()).rejects.toThrow('cut');
    expect(connection.isLost).toBe(true);
  });
});

it('saved views that were tampered with are no error', () => {
  expect(readViews('{')).toEqual([]);
  expect(readViews('[1,{"name":"x"},{"name":"ok","query":{"flow":"f","evil":{}}}]')).toEqual([{ name: 'ok', query: { flow: 'f' } }]);
});
