// Every request that the pages make, by name.
import { getJson, getText, send, type Query } from './client';
import type {
  EventPage, Execution, Explanation, LogPage, Plan, RunPage, RunSnapshot, RunTasks, WaitPage, Wheel, WheelEvent, Worker,
} from './types';

const run = (id: string) => `/runs/${encodeURIComponent(id)}`;
const execution = (id: string) => `/executions/${encodeURIComponent(id)}`;

export interface RunQuery {
  status?: string | undefined;
  flow?: string | undefined;
  tag?: string | undefined;
  updated_after?: number | undefined;
  cursor?: string | undefined;
  limit?: number | undefined;
}

/** A page of runs. `updated_after` is always sent, because only then the answer has a cursor. */
export const listRuns = (query: RunQuery, signal?: AbortSignal) =>
  getJson<RunPage>('/runs', { query: { updated_after: 0, ...query } as Query, ...(signal && { signal }) });

export const getRun = (id: string, signal?: AbortSignal) => getJson<RunSnapshot>(run(id), signal ? { signal } : {});
export const getTasks = (id: string) => getJson<RunTasks>(`${run(id)}/tasks`);
export const getPlan = (id: string) => getJson<Plan>(`${run(id)}/plan`);
export const getExplanation = (id: string) => getJson<Explanation>(`${run(id)}/explain`);
export const getExecution = (id: string, at?: number) => getJson<Execution>(execution(id), { query: { at } });

export const listEvents = (id: string, after: number, limit: number) =>
  getJson<EventPage>(`${execution(id)}/events`, { query: { after, limit } });

export const listLog = (
  id: string,
  query: { sinceToken?: string | undefined; limit?: number; task?: string | undefined; stream?: string | undefined },
  signal?: AbortSignal,
) => getJson<LogPage>(`${run(id)}/logs`, { query, ...(signal && { signal }) });

export const logPath = (id: string) => `${run(id)}/logs`;
export const logStreamPath = (id: string) => `${run(id)}/logs/stream`;
export const watchPath = (id: string) => `${run(id)}/watch`;
export const watchAllPath = '/runs/watch';

export const listWaits = (cursor?: string) => getJson<WaitPage>('/waits', { query: { limit: 200, cursor } });

export const listWorkers = (scope: 'active' | 'all', include_hidden: boolean) =>
  getJson<Worker[]>('/workers', { query: { scope, include_hidden, limit: 500 } });

export const listWheels = () => getJson<Wheel[]>('/wheels');
export const listWheelHistory = (limit: number) => getJson<WheelEvent[]>('/wheels/history', { query: { limit } });
export const getMetrics = () => getText('/metrics');

export const cancelRun = (id: string) => send<RunSnapshot>('POST', `${run(id)}/cancel`);
export const retryRun = (id: string) => send<{ executionId: string }>('POST', `${execution(id)}/retry`);
export const hideWorker = (id: string, hidden: boolean) =>
  send<unknown>('PATCH', `/workers/${encodeURIComponent(id)}`, { hidden });

export const resumeNode = (id: string, node: string, key: string | null, output: unknown) =>
  send<unknown>('POST', `${execution(id)}/nodes/${encodeURIComponent(node)}/resume`, {
    ...(key !== null && { resumeKey: key }),
    output,
  });
