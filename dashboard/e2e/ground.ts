// What the tests stand on: a real server in a folder of its own, which serves the page, and real runs.
import { spawn, type ChildProcess } from 'node:child_process';
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Wheel } from './wheel';

const here = import.meta.dirname;
export const dist = join(here, '..', 'dist');

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

export async function until<T>(what: string, ask: () => Promise<T | null | undefined | false>, seconds = 20): Promise<T> {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const found = await ask().catch(() => null);
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited ${seconds} s for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export class Ground {
  private constructor(
    readonly url: string,
    readonly folder: string,
    readonly process: ChildProcess,
  ) {}

  static async start(env: Record<string, string> = {}): Promise<Ground> {
    const binary = process.env.PYOCO_SERVER_BIN;
    if (!binary) throw new Error('PYOCO_SERVER_BIN names no pyoco-server');
    const folder = await mkdtemp(join(tmpdir(), 'pyoco-dashboard-'));
    await cp(join(here, '..', '..', 'examples'), join(folder, 'flows'), { recursive: true });
    await cp(join(here, 'flows'), join(folder, 'flows'), { recursive: true });
    const port = await freePort();
    const args = ['up', '--data-dir', join(folder, 'data'), '--port', String(port), '--flows', join(folder, 'flows')];
    // Whatever this machine speaks, the tests read English unless they say otherwise.
    const own = { PYOCO_LOAD_DOTENV: '0', PYOCO_DASHBOARD_LANG: 'en', ...env };
    const child = spawn(binary, args, { env: { ...process.env, ...own }, stdio: 'ignore', cwd: folder });
    const ground = new Ground(`http://127.0.0.1:${port}`, folder, child);
    await until('the server', async () => (await fetch(`${ground.url}/health`)).ok);
    // Otherwise every test would wait for a page that this build does not have.
    if (!(await fetch(ground.url)).ok) throw new Error('this pyoco-server was built without the page: npm run build, then build it again');
    return ground;
  }

  async post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Record<string, unknown>> {
    const answer = await fetch(this.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-idempotency-key': crypto.randomUUID(), ...headers },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as Record<string, unknown>;
  }

  async submit(flow: string, more: Record<string, unknown> = {}, headers: Record<string, string> = {}): Promise<string> {
    return String((await this.post('/runs', { flow_name: flow, params: {}, ...more }, headers)).run_id);
  }

  async submitYaml(file: string, flow: string, lines = '30000'): Promise<string> {
    const form = new FormData();
    const text = (await readFile(join(here, 'flows', file), 'utf8')).replace('lines: 30000', `lines: ${lines}`);
    form.set('workflow', new Blob([text]), 'flow.yaml');
    form.set('flow_name', flow);
    const answer = await fetch(`${this.url}/runs/yaml`, { method: 'POST', body: form });
    if (!answer.ok) throw new Error(await answer.text());
    return String(((await answer.json()) as { run_id: string }).run_id);
  }

  async upload(wheel: Wheel, tags: string, agent: string): Promise<void> {
    const form = new FormData();
    form.set('wheel', new Blob([wheel.bytes]), wheel.file);
    form.set('tags', tags);
    const answer = await fetch(`${this.url}/wheels`, { method: 'POST', body: form, headers: { 'user-agent': agent } });
    if (!answer.ok) throw new Error(await answer.text());
  }

  /** Many runs that no worker takes, from several connections at once. */
  async submitMany(count: number, connections = 12): Promise<void> {
    let left = count;
    const one = async () => {
      while (left > 0) {
        left -= 1;
        await this.submit('hello', { tag: 'nobody' });
      }
    };
    await Promise.all(Array.from({ length: connections }, one));
  }

  async status(id: string): Promise<string> {
    return ((await (await fetch(`${this.url}/runs/${id}`)).json()) as { status: string }).status;
  }

  reached(id: string, ...statuses: string[]): Promise<boolean> {
    return until(`${id} to be ${statuses.join(' or ')}`, async () => statuses.includes(await this.status(id)));
  }

  async close(): Promise<void> {
    const isGone = new Promise((resolve) => this.process.once('exit', resolve));
    this.process.kill('SIGTERM');
    // A second signal ends what still runs.
    const timer = setTimeout(() => this.process.kill('SIGKILL'), 3000);
    await isGone;
    clearTimeout(timer);
    await rm(this.folder, { recursive: true, force: true });
  }
}
