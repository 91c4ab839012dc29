// What the list shows: kept in the address, so that it can be linked, saved and gone back to.
import type { RunSummary } from '../api/types';

export interface RunFilter {
  status: string;
  flow: string;
  tag: string;
  text: string;
  /** One of `spans`, or empty. */
  time: string;
}

/** How far back the list looks, in seconds. */
export const spans: Record<string, number> = { '15m': 900, '1h': 3600, '24h': 86_400, '7d': 604_800 };

export const noFilter: RunFilter = { status: '', flow: '', tag: '', text: '', time: '' };

export function filterOf(query: Record<string, string>): RunFilter {
  return {
    status: query.status ?? '',
    flow: query.flow ?? '',
    tag: query.tag ?? '',
    text: query.q ?? '',
    time: Object.hasOwn(spans, query.time ?? '') ? (query.time ?? '') : '',
  };
}

export function queryOf(filter: RunFilter): Record<string, string> {
  const pairs = { status: filter.status, flow: filter.flow, tag: filter.tag, q: filter.text, time: filter.time };
  return Object.fromEntries(Object.entries(pairs).filter(([, value]) => value !== ''));
}

export const isFiltered = (filter: RunFilter) => Object.keys(queryOf(filter)).length > 0;

/** Whether a run has the text anywhere where a person would look for it. Every word has to be found. */
export function hasText(run: RunSummary, text: string): boolean {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return true;
  const places = [run.run_id, run.flow_name, run.tag, ...(run.tags ?? []), run.worker_id, run.error, run.tenant_id];
  const whole = places.filter(Boolean).join('\n').toLowerCase();
  return words.every((word) => whole.includes(word));
}

/** Whether a run belongs into the list. Flow and tag never change, so the server sorts by those; status and text we do. */
export function fits(run: RunSummary, filter: RunFilter, now: number): boolean {
  if (filter.status && run.status !== filter.status) return false;
  const span = spans[filter.time];
  if (span !== undefined && (run.updated_at ?? 0) < now - span) return false;
  return hasText(run, filter.text);
}
