import { readFile } from 'node:fs/promises';
import { Ground } from './ground';
import { accessProblems, expect, overflow, shot, test } from './page';

let ground: Ground;
let url: string;
let ladder: string;
let hello: string;

test.beforeAll(async () => {
  ground = await Ground.start();
  url = ground.url;
  ladder = await ground.submit('ladder');
  hello = await ground.submit('hello');
  await ground.reached(ladder, 'FAILED');
  await ground.reached(hello, 'COMPLETED');
});
test.afterAll(() => ground.close());

for (const lang of ['en', 'ja'] as const) {
  test(`a failed run says where and why, with its graph and its time (${lang})`, async ({ page }) => {
    await page.goto(`${url}/?lang=${lang}#/runs/${ladder}`);
    await expect(page.getByText(lang === 'en' ? 'It failed at switch/1/verify.' : 'switch/1/verify で失敗しました。')).toBeVisible();
    const graph = page.locator('.svelte-flow');
    for (const name of ['prepare', 'repeat', 'switch', 'verify']) await expect(graph.getByText(name, { exact: true }).first()).toBeVisible();
    await expect(graph.getByText('step', { exact: true })).toHaveCount(3);
    await graph.getByText('verify', { exact: true }).click();
    const panel = page.getByRole('region', { name: /switch\/1\/verify/ });
    await expect(panel.getByText('the sums differ')).toBeVisible();
    const bars = page.getByRole('table', { name: lang === 'en' ? 'Timeline' : 'タイムライン' });
    await expect(bars.getByRole('img', { name: /repeat\/2\/step/ })).toBeVisible();
    await shot(page, `run-${lang}`);
    expect(await accessProblems(page)).toEqual([]);
  });
}

test('loops fold and unfold', async ({ page }) => {
  await page.goto(`${url}/#/runs/${ladder}`);
  const graph = page.locator('.svelte-flow');
  await page.getByRole('button', { name: 'Fold repeat' }).click();
  await expect(graph.getByText('step', { exact: true })).toHaveCount(0);
  await page.getByRole('button', { name: 'Unfold all' }).click();
  await expect(graph.getByText('step', { exact: true })).toHaveCount(3);
});

test('an attempt that failed and the next one both have a bar', async ({ page }) => {
  await page.goto(`${url}/#/runs/${hello}`);
  await expect(page.getByRole('img', { name: /translate, attempt 1: Failed/ })).toBeVisible();
  await expect(page.getByRole('img', { name: /translate, attempt 2: Succeeded/ })).toBeVisible();
});

test('the slider shows the run as it was at any event', async ({ page }) => {
  await page.goto(`${url}/?lang=en#/runs/${ladder}?tab=events`);
  const slider = page.getByRole('slider');
  await expect(page.getByText(/After event (\d+) of \1/)).toBeVisible();
  await slider.fill('5');
  await expect(page.getByText('After event 5 of')).toBeVisible();
  await expect(page.getByRole('row', { name: /prepare Running/ })).toBeVisible();
  await expect(page.getByRole('listbox').getByRole('option', { selected: true })).toContainText('NODE_STARTED');
  await page.getByRole('button', { name: 'Next event' }).click();
  await expect(page.getByRole('row', { name: /prepare Succeeded/ })).toBeVisible();
  expect(page.url()).toContain('at=6');
  await shot(page, 'run-events');
  expect(await accessProblems(page)).toEqual([]);
});

test('the log follows, filters, searches, links to a line and is downloaded', async ({ page, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const slow = await ground.submit('slow');
  await page.goto(`${url}/#/runs/${slow}?tab=log`);
  const log = page.getByRole('log');
  await expect(log.getByText('tick 12', { exact: true })).toBeVisible();
  await expect(log.getByText('tick 45', { exact: true })).toBeVisible();
  await shot(page, 'run-log');
  await page.getByPlaceholder('Search in the log').fill('TICK 7');
  await expect(page.getByText('1 of 1', { exact: true })).toBeVisible();
  await expect(log.getByText('tick 7', { exact: true })).toBeVisible();
  await log.getByText('tick 7', { exact: true }).click();
  expect(page.url()).toContain('line=8');
  await page.getByLabel('Stream').selectOption('engine');
  await expect(log.getByText('started by worker')).toBeVisible();
  await expect(log.getByText('tick 7', { exact: true })).toHaveCount(0);
  await page.getByRole('button', { name: 'Copy lines' }).click();
  await expect(page.getByText('Lines copied: 1')).toBeVisible();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toContain('started by worker');
  await page.getByLabel('Stream').selectOption('');
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download' }).click()]);
  expect(await readFile(await download.path(), 'utf8')).toContain('tick stdout | tick 7\n');
  expect(await accessProblems(page)).toEqual([]);
  await ground.post(`/runs/${slow}/cancel`, {});
  await expect(page.getByText('It was cancelled.')).toBeVisible();
});

test('30,000 lines come quickly, and both ends are reached', async ({ page }) => {
  const chatty = await ground.submitYaml('chatty.yaml', 'chatty');
  await ground.reached(chatty, 'COMPLETED');
  await page.goto(`${url}/#/runs/${chatty}?tab=log`);
  const log = page.getByRole('log');
  await expect(log.getByText('line 30000 of many')).toBeVisible();
  await log.evaluate((view) => (view.scrollTop = 0));
  await expect(log.getByText('line 1 of many')).toBeVisible();
  await log.evaluate((view) => (view.scrollTop = view.scrollHeight / 2));
  await expect(log.getByText('line 15000 of many')).toBeVisible();
  expect(await log.locator('.line').count()).toBeLessThan(120);
  await page.getByPlaceholder('Search in the log').fill('line 29999');
  await expect(log.getByText('line 29999 of many')).toBeVisible();
});

test('inputs, outputs, the raw snapshot and the command are there', async ({ page }) => {
  await page.goto(`${url}/#/runs/${hello}?tab=data`);
  await expect(page.getByRole('group', { name: 'Output' }).filter({ hasText: 'Hello, world!' })).toBeVisible();
  await expect(page.getByText(`tasks ${hello}`)).toBeVisible();
  await page.getByRole('tab', { name: 'Raw' }).click();
  await expect(page.getByRole('group', { name: /snapshot/ })).toContainText('"status": "COMPLETED"');
  await page.getByLabel('with task records').check();
  await expect(page.getByRole('group', { name: /snapshot/ })).toContainText('"task_records"');
  expect(await accessProblems(page)).toEqual([]);
});

test('markup in every field stays text', async ({ page }) => {
  const evil = await ground.submit('broken', { params: { note: '<img src=x onerror=window.hacked=1>', '<b>key</b>': '</script><script>window.hacked=1</script>' }, tags: ['default'] });
  await ground.reached(evil, 'FAILED');
  for (const place of ['#/runs', ...['overview&node=shout', 'log', 'events', 'data', 'raw'].map((tab) => `#/runs/${evil}?tab=${tab}`)]) {
    await page.goto(`${url}/${place}`);
    await expect(page.locator('main')).toContainText(place === '#/runs' ? 'broken' : 'shout');
    await page.waitForTimeout(300);
    expect(await page.evaluate(() => [document.querySelectorAll('main img, main script').length, 'hacked' in window])).toEqual([0, false]);
  }
  await page.goto(`${url}/#/runs/${evil}?tab=log`);
  await expect(page.getByRole('log').getByText('<img src=x onerror=window.hacked=1>')).toBeVisible();
});

test('a run that nobody knows is told decently', async ({ page }) => {
  await page.goto(`${url}/#/runs/00000000-0000-4000-8000-000000000000`);
  await expect(page.getByText(/There is no run 00000000/)).toBeVisible();
});

test('a run changes before the eyes within 300 ms, and says for what it waits', async ({ page }) => {
  const id = await ground.submit('approval');
  await page.goto(`${url}/#/runs/${id}`);
  await expect(page.getByText('approve waits for an answer.')).toBeVisible();
  const shownAt = page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        const look = () => (document.querySelector('main [data-status="COMPLETED"]') ? resolve(Date.now()) : requestAnimationFrame(look));
        look();
      }),
  );
  await ground.post(`/executions/${id}/nodes/approve/resume`, { resumeKey: 'letter', output: { approved: true } });
  await ground.reached(id, 'COMPLETED');
  const { end_time } = (await (await fetch(`${ground.url}/runs/${id}`)).json()) as { end_time: number };
  const late = (await shownAt) - end_time * 1000;
  console.log(`the end of a run was on screen after ${Math.round(late)} ms`);
  expect(late).toBeLessThanOrEqual(300);
});

test('a run fits a telephone, in the dark', async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 800 });
  await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' });
  for (const tab of ['overview', 'log', 'events', 'data', 'raw']) {
    await page.goto(`${url}/?lang=ja#/runs/${ladder}?tab=${tab}`);
    await expect(page.getByRole('tab', { selected: true })).toBeVisible();
    await page.waitForTimeout(400);
    expect([tab, await overflow(page)]).toEqual([tab, 0]);
    expect(await accessProblems(page)).toEqual([]);
    if (tab === 'overview') await shot(page, 'run-small-dark');
  }
});
