import { readFileSync } from 'node:fs';
import { Ground } from './ground';
import { accessProblems, expect, shot, test } from './page';
import { wheel } from './wheel';

let ground: Ground;
let url: string;

test.beforeAll(async () => {
  ground = await Ground.start();
  url = ground.url;
  await ground.submit('hello');
  await ground.submit('hello', { tag: 'gpu' });
  await ground.submit('nope');
  const old = wheel('greeter', '1.1.0');
  await ground.upload(old, 'gpu', 'curl');
  await fetch(`${url}/wheels/${old.file}`, { method: 'DELETE' });
  await ground.upload(wheel('greeter', '1.2.0'), 'gpu', '<b>curl</b>');
});
test.afterAll(() => ground.close());

const words = {
  en: { waits: 'Waiting for people', workers: 'Workers', wheels: 'Wheels', metrics: 'Metrics' },
  ja: { waits: '回答待ち', workers: 'ワーカー', wheels: 'wheel', metrics: 'メトリクス' },
};

for (const lang of ['en', 'ja'] as const) {
  test(`what waits for people is on one page (${lang})`, async ({ page }) => {
    const id = await ground.submit('approval');
    await page.goto(`${url}/?lang=${lang}#/waits`);
    await expect(page.getByRole('heading', { level: 1 })).toHaveText(words[lang].waits);
    await expect(page.getByRole('listitem').filter({ hasText: id.slice(0, 8) })).toContainText('May the letter go out?');
    expect(await accessProblems(page)).toEqual([]);
    await shot(page, `waits-${lang}`);
    await ground.post(`/runs/${id}/cancel`, {});
    await expect(page.getByText(id.slice(0, 8))).toHaveCount(0);
  });

  test(`workers say what they do (${lang})`, async ({ page }) => {
    const slow = await ground.submit('slow');
    await page.goto(`${url}/?lang=${lang}#/workers`);
    await expect(page.getByRole('heading', { level: 1 })).toHaveText(words[lang].workers);
    const row = page.locator('[data-worker="worker"]');
    await expect(row.locator('[data-status="RUNNING"]').first()).toBeVisible();
    await expect(row.getByRole('link', { name: slow.slice(0, 8) })).toBeVisible();
    expect(await accessProblems(page)).toEqual([]);
    await shot(page, `workers-${lang}`);
    await ground.post(`/runs/${slow}/cancel`, {});
    await ground.reached(slow, 'CANCELLED');
  });

  test(`wheels and their history are listed (${lang})`, async ({ page }) => {
    await page.goto(`${url}/?lang=${lang}#/wheels`);
    await expect(page.getByRole('heading', { level: 1 })).toHaveText(words[lang].wheels);
    await expect(page.getByRole('row', { name: /greeter-1\.2\.0.*gpu/ }).first()).toBeVisible();
    const uploaded = lang === 'en' ? 'uploaded' : '登録';
    await expect(page.getByRole('row', { name: new RegExp(`${uploaded} greeter-1\\.2\\.0.*127\\.0\\.0\\.1.*<b>curl</b>`) })).toBeVisible();
    const deleted = lang === 'en' ? 'deleted' : '削除';
    await expect(page.getByRole('row', { name: new RegExp(`${deleted} greeter-1\\.1\\.0`) })).toBeVisible();
    expect(await accessProblems(page)).toEqual([]);
    await shot(page, `wheels-${lang}`);
  });

  test(`metrics are drawn from two readings on (${lang})`, async ({ page }) => {
    await page.goto(`${url}/?lang=${lang}#/metrics`);
    await expect(page.getByRole('heading', { level: 1 })).toHaveText(words[lang].metrics);
    await ground.submit('hello');
    await ground.submit('nope');
    await expect(page.locator('canvas')).toHaveCount(6, { timeout: 20_000 });
    await expect(page.getByRole('region', { name: lang === 'en' ? 'Queue by tag, runs' : 'タグごとのキュー（件）' })).toContainText('gpu');
    expect(await accessProblems(page)).toEqual([]);
    await shot(page, `metrics-${lang}`);
  });
}

/** A description without its words, which may change without the page having to know. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf);
  if (typeof value !== 'object' || value === null) return value;
  const isWords = (name: string, part: unknown) => typeof part === 'string' && ['description', 'summary', 'title', 'version'].includes(name);
  return Object.fromEntries(Object.entries(value).filter(([name, part]) => name !== 'example' && !isWords(name, part)).map(([name, part]) => [name, shapeOf(part)]));
}

test('openapi.json, of which the types are made, is the server’s', async () => {
  const theirs: unknown = await (await fetch(`${url}/openapi.json`)).json();
  const ours: unknown = JSON.parse(readFileSync('openapi.json', 'utf8'));
  expect(shapeOf(ours), 'fetch it anew and run `npm run types`, as README.md says').toEqual(shapeOf(theirs));
});

test('nothing can be done where nothing may be done', async ({ page }) => {
  const id = await ground.submit('approval');
  await page.goto(`${url}/#/runs/${id}?node=approve`);
  await expect(page.getByText('approve waits for an answer.')).toBeVisible();
  await expect(page.getByText('read-only')).toBeVisible();
  for (const name of ['Cancel the run', 'Run again', 'Answer', 'Hide']) await expect(page.getByRole('button', { name, exact: true })).toHaveCount(0);
  await page.goto(`${url}/#/waits`);
  await expect(page.getByText(id.slice(0, 8), { exact: true })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Answer' })).toHaveCount(0);
  await page.goto(`${url}/#/workers`);
  await expect(page.getByText('worker', { exact: true })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Hide' })).toHaveCount(0);
});

test('the keys are explained, and the libraries are named', async ({ page }) => {
  await page.goto(url);
  await expect(page.locator('[data-run]').first()).toBeVisible();
  await page.keyboard.press('?');
  const dialog = page.getByRole('dialog');
  await expect(dialog).toContainText('next and previous run');
  expect(await accessProblems(page)).toEqual([]);
  await dialog.getByRole('link', { name: /Licences/ }).click();
  await expect(page.locator('body')).toContainText('uplot');
});

test('the server says which language the page begins with', async ({ page }) => {
  const other = await Ground.start({ PYOCO_DASHBOARD_LANG: 'ja' });
  try {
    await page.goto(other.url);
    await expect(page.locator('html')).toHaveAttribute('lang', 'ja');
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('実行一覧');
  } finally {
    await other.close();
  }
});

test('the language and the colours are chosen in the page and stay', async ({ page }) => {
  await page.goto(url);
  await page.getByLabel('Language').selectOption('ja');
  await expect(page.getByRole('link', { name: '実行', exact: true })).toBeVisible();
  await page.getByRole('button', { name: /配色/ }).click();
  await page.getByRole('button', { name: /配色/ }).click();
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
  await page.reload();
  await expect(page.locator('html')).toHaveAttribute('lang', 'ja');
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
  await shot(page, 'runs-dark');
});
