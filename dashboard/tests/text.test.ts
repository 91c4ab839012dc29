// Whatever comes from runs is text on the page, never markup.
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it } from 'vitest';
import type { RunSnapshot } from '../src/api/types';
import LogLine from '../src/run/log/LogLine.svelte';
import RunHeader from '../src/run/RunHeader.svelte';
import Explain from '../src/run/Explain.svelte';
import RunRow from '../src/runs/RunRow.svelte';
import Cli from '../src/ui/Cli.svelte';
import Json from '../src/ui/Json.svelte';
import StatusBadge from '../src/ui/StatusBadge.svelte';

const evil = '"><img src=x onerror=alert(1)><script>alert(1)</script>';
const run: RunSnapshot = {
  run_id: evil, flow_name: evil, status: evil, tag: evil, tags: [evil], worker_id: evil, worker_state: evil, error: evil,
  updated_at: 1, start_time: 1, warnings: [evil], cancel_requested_at: 1, cancel_requested_by: evil,
};
let mounted: Record<string, unknown> | null = null;
afterEach(() => {
  if (mounted) void unmount(mounted);
  document.body.replaceChildren();
});

const parts: [string, any, Record<string, unknown>][] = [
  ['a row of the list', RunRow, { run, snapshot: { ...run, status: 'RUNNING' }, history: [evil], index: 0, isActive: false, height: 30, onfocus: () => undefined }],
  ['the head of a run', RunHeader, { run, execution: null }],
  ['an explanation', Explain, { run, explanation: { run_id: evil, status: evil, summary: evil, hint: evil, reasons: [{ code: evil, message: evil, node_id: evil, since: 1, until: 1 }] }, failedNode: evil }],
  ['a line of a log', LogLine, { entry: { seq: 1, timestamp: evil, message: `\u001b[31m${evil}`, task: evil, stream: 'stdout', attempt: 1 }, row: 0, height: 20, search: 'img', isHit: true, isChosen: false, onchoose: () => undefined }],
  ['a value', Json, { value: { [evil]: evil }, label: evil }],
  ['a command', Cli, { words: ['get', evil] }],
  ['a status', StatusBadge, { status: evil, title: evil }],
];

it.each(parts)('%s shows markup as text', (_, component, props) => {
  mounted = mount(component, { target: document.body, props }) as Record<string, unknown>;
  flushSync();
  expect(document.querySelector('img, script, [onerror]')).toBeNull();
  expect(document.body.textContent).toContain('onerror=alert(1)');
});
