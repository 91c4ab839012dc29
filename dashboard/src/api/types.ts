// The shapes of the API, by the names that the pages use. What openapi.json leaves open is said here.
import type { components } from './schema';

type Schemas = components['schemas'];

export type RunSummary = Schemas['RunSummary'];
export type RunSnapshot = Schemas['RunSnapshot'];
export type TaskRecord = Schemas['TaskRecord'];
export type RunTasks = Schemas['RunTasks'];
export type Execution = Schemas['Execution'];
export type ExecutionNode = Schemas['ExecutionNode'];
export type ExecutionEvent = Schemas['ExecutionEvent'];
export type EventPage = Schemas['EventPage'];
export type LogEntry = Schemas['LogEntry'];
export type LogPage = Schemas['LogPage'];
export type Wait = Schemas['Wait'];
export type WaitPage = Schemas['WaitPage'];
export type Worker = Schemas['WorkerRecord'];
export type Wheel = Schemas['WheelArtifact'];
export type WheelEvent = Schemas['WheelHistoryEvent'];
export type Plan = Schemas['RunPlan'];
export type PlanNode = Schemas['PlanNode'];
export type PlanEdge = Schemas['PlanEdge'];
export type Explanation = Schemas['Explanation'];
export type Reason = Schemas['Reason'];

/** A page of the list as the page asks for it: of summaries. */
export interface RunPage {
  items: RunSummary[];
  next_cursor?: string | null;
}

/** One attempt of a task, as `TaskRecord.attempts` has it. */
export interface Attempt {
  attempt: number;
  state: string;
  started_at: number | null;
  ended_at: number | null;
  worker_id: string | null;
  error: string | null;
}

/** What a worker says about its wheels. */
export interface WheelSync {
  enabled?: boolean;
  last_result?: string | null;
  last_success_at?: number | null;
  last_error?: string | null;
  installed_wheels?: string[];
  skipped_incompatible?: unknown[];
}
