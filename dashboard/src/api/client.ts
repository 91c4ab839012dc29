// One way to ask the server: adds the key, reads errors, and tells the rest of the page whether the server answers.
import { clock } from '../lib/clock.svelte';
import { connection } from '../lib/connection.svelte';
import { settings } from '../lib/settings';
import { newId } from '../lib/ids';
import { apiKey } from './key.svelte';
import { readEvents, type ServerSentEvent } from './sse';

export type Query = Record<string, string | number | boolean | null | undefined>;

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code: string | null = null,
  ) {
    super(message);
  }
}

export interface Asked {
  query?: Query;
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

export function address(path: string, query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') search.set(name, String(value));
  }
  const text = search.toString();
  return text ? `${path}?${text}` : path;
}

/** The words of an error body, whichever of the API's two forms it has. */
export function errorOf(status: number, body: unknown): ApiError {
  if (typeof body === 'object' && body !== null) {
    const { error, detail } = body as { error?: { code?: string; message?: string }; detail?: unknown };
    if (error?.message) return new ApiError(status, error.message, error.code ?? null);
    if (typeof detail === 'string') return new ApiError(status, detail);
    if (detail !== undefined) return new ApiError(status, JSON.stringify(detail));
  }
  return new ApiError(status, `HTTP ${status}`);
}

async function ask(method: string, path: string, asked: Asked, body?: unknown): Promise<Response> {
  await apiKey.given();
  const headers: Record<string, string> = { ...asked.headers };
  const key = apiKey.value;
  if (key) headers[settings.apiKeyHeader] = key;
  const init: RequestInit = { method, headers, cache: 'no-store', credentials: 'same-origin' };
  if (asked.signal) init.signal = asked.signal;
  if (body !== undefined) {
    headers['content-type'] = 'application/json';
    init.body = JSON.stringify(body);
  }
  let response: Response;
  try {
    response = await fetch(address(path, asked.query), init);
  } catch (error) {
    if (!asked.signal?.aborted) connection.lost();
    throw error;
  }
  clock.hear(response.headers.get('date'));
  // A proxy answers 502 to 504 when the server behind it is away; 503 is the server itself without its store.
  if (response.status >= 502) connection.lost();
  else connection.heard();
  if (response.ok) return response;
  const failure = errorOf(response.status, await response.json().catch(() => null));
  // A 403 to somebody who only looks means a bad key; to a command it may also mean that the key may only look.
  const isKeyWrong = response.status === 401 || (response.status === 403 && method === 'GET');
  if (isKeyWrong && key === apiKey.value) apiKey.ask(key !== '');
  throw failure;
}

export async function getJson<T>(path: string, asked: Asked = {}): Promise<T> {
  return (await (await ask('GET', path, asked)).json()) as T;
}

export async function getText(path: string, asked: Asked = {}): Promise<string> {
  return (await ask('GET', path, asked)).text();
}

export async function getBlob(path: string, asked: Asked = {}): Promise<Blob> {
  return (await ask('GET', path, asked)).blob();
}

/** Sends a command. It has its own idempotency key, so that a repeat by a proxy does nothing twice. */
export async function send<T>(method: 'POST' | 'PATCH', path: string, body: unknown = {}): Promise<T> {
  return (await (await ask(method, path, { headers: { 'x-idempotency-key': newId() } }, body)).json()) as T;
}

/**
 * The events of a stream. It ends with the stream; who wants to go on asks again with the last id. A server that says that nothing
 * will ever come (204) is told as an event `end`.
 */
export async function* getEvents(path: string, asked: Asked = {}): AsyncGenerator<ServerSentEvent> {
  const response = await ask('GET', path, { ...asked, headers: { accept: 'text/event-stream', ...asked.headers } });
  if (response.status === 204 || !response.body) {
    yield { id: null, event: 'end', data: '' };
    return;
  }
  try {
    yield* readEvents(response.body);
  } catch (error) {
    if (!asked.signal?.aborted) connection.lost();
    throw error;
  }
}
