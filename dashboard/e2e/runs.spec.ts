import { Ground } from './ground';
import { accessProblems, expect, overflow, shot, test } from './page';

let ground: Ground;
let url: string;

test.beforeAll(async () => {
  ground = await Ground.start();
  url = ground.url;
  for (let n = 0; n < 6; n += 1) await ground.submit('hello', { params: { name: `n${n}` } });
  await ground.submit('hello', { tag: 'gpu' });
  await ground.submit('nope');
  const last = [await ground.submit('ladder'), await ground.submit('broken')];
  await ground.submit('approval', { tags: ['default', 'letters'] });
  for (const id of last) await ground.reached(id, 'FAILED');
});
test.afterAll(() => ground.close());

for (const lang of ['en', 'ja'] as const) {
  test(`the list shows runs, their states and why they wait (${lang})`, async ({ page }) => {
    await page.goto(`${url}/?lang=${lang}`);
    const table = page.getByRole('table');
    await expect(table.getByRole('row')).toHaveCount(12);
    const words = lang === 'en'
      ? { completed: 'Completed', waiting: 'Waiting', noWorker: 'No live worker takes runs with the tag gpu.', tasks: '5 of 5 tasks done' }
      : { completed: '完了', waiting: '回答待ち', noWorker: 'タグ gpu の実行を受け付けるワーカーが稼働していません。', tasks: '5 タスク中 5 完了' };
    await expect(table.getByText(words.completed).first()).toBeVisible();
    await expect(table.getByText(words.waiting, { exact: true })).toBeVisible();
    await expect(table.getByText(words.noWorker)).toBeVisible();
    await expect(table.getByRole('img', { name: words.tasks }).first()).toBeVisible();
    await expect(table.getByText("flow_not_found: 'nope'")).toBeVisible();
    expect(await accessProblems(page)).toEqual([]);
    await shot(page, `runs-${lang}`);
  });
}

test('the counts of statuses filter, and the address keeps the filter', async ({ page }) => {
  await page.goto(url);
  await page.getByRole('button', { name: /^Failed\s*3/ }).click();
  await expect(page.getByRole('row')).toHaveCount(4);
  expect(page.url()).toContain('status=FAILED');
  await page.reload();
  await expect(page.getByRole('row')).toHaveCount(4);
  await page.getByLabel('Flow', { exact: true }).fill('ladder');
  await expect(page.getByRole('row')).toHaveCount(2);
  expect(page.url()).toContain('flow=ladder');
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await expect(page.getByRole('row')).toHaveCount(12);
});

test('a text is found in ids, labels and errors', async ({ page }) => {
  await page.goto(url);
  const search = page.getByRole('searchbox');
  await search.fill('letters');
  await expect(page.getByRole('row')).toHaveCount(2);
  await search.fill('flow_not_found');
  await expect(page.getByRole('row')).toHaveCount(2);
  await search.fill('no such thing');
  await expect(page.getByText('No run fits.')).toBeVisible();
});

test('keys move through the list and open a run', async ({ page }) => {
  await page.goto(url);
  await expect(page.getByRole('row')).toHaveCount(12);
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('k');
  await expect(page.locator('[data-index="0"]')).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/#\/runs\/[0-9a-f-]{36}/);
  await page.keyboard.press('1');
  await expect(page.getByRole('row')).toHaveCount(12);
  await page.keyboard.press('/');
  await expect(page.getByRole('searchbox')).toBeFocused();
});

test('a view is saved and found again', async ({ page }) => {
  await page.goto(`${url}/#/runs?status=FAILED&flow=hello`);
  await page.getByText('Views').click();
  await page.getByLabel('Name of the view').fill('my failures');
  await page.getByRole('button', { name: 'Save this view' }).click();
  await page.goto(`${url}/#/runs`);
  await page.reload();
  await page.getByText('Views').click();
  await page.getByRole('link', { name: 'my failures' }).click();
  await expect(page).toHaveURL(/status=FAILED&flow=hello/);
});

test('a change is on screen within 300 ms, without a reload', async ({ page }) => {
  await page.goto(`${url}/#/runs?flow=hello`);
  await expect(page.getByRole('row')).toHaveCount(8);
  const late: number[] = [];
  for (let n = 0; n < 5; n += 1) {
    const id = await ground.submit('hello');
    // When the row showed that the run had completed, by the clock of this machine, which is the server's too.
    const shownAt = page.evaluate(
      (run) =>
        new Promise<number>((resolve) => {
          const look = () => {
            if (document.querySelector(`[data-run="${run}"] [data-status="COMPLETED"]`)) resolve(Date.now());
            else requestAnimationFrame(look);
          };
          look();
        }),
      id,
    );
    await ground.reached(id, 'COMPLETED');
    const { end_time } = (await (await fetch(`${ground.url}/runs/${id}`)).json()) as { end_time: number };
    late.push((await shownAt) - end_time * 1000);
  }
  console.log(`a change was on screen after ${late.map((ms) => Math.round(ms)).join(', ')} ms`);
  late.sort((a, b) => a - b);
  expect(late[2]).toBeLessThanOrEqual(300);
});

test('a run whose worker is not heard is stale, and not failed', async ({ page }) => {
  const slow = await ground.submit('slow');
  await ground.reached(slow, 'RUNNING');
  // The worker is fine; what is told of its last sign of life is made old.
  await page.route(`**/runs/${slow}`, async (route) => {
    const run = (await (await route.fetch()).json()) as { heartbeat_at: number };
    await route.fulfill({ json: { ...run, heartbeat_at: run.heartbeat_at - 100 } });
  });
  await page.goto(url);
  const row = page.locator(`[data-run="${slow}"]`);
  await expect(row.getByText('Stale')).toBeVisible();
  await expect(row).toContainText('It is not known to have failed.');
  await expect(row.getByText('Failed', { exact: true })).toHaveCount(0);
  await ground.post(`/runs/${slow}/cancel`, {});
});

test('nothing moves under the eyes of somebody who has scrolled', async ({ page }) => {
  await page.setViewportSize({ width: 1200, height: 420 });
  await page.goto(url);
  await expect(page.getByRole('row').nth(3)).toBeVisible();
  await page.locator('[data-run]').nth(2).hover();
  await page.mouse.wheel(0, 120);
  const first = await page.locator('[data-run]').first().getAttribute('data-run');
  await ground.reached(await ground.submit('hello'), 'COMPLETED');
  const pill = page.getByRole('button', { name: /Show changes/ });
  await expect(pill).toBeVisible();
  expect(await page.locator('[data-run]').first().getAttribute('data-run')).toBe(first);
  await pill.click();
  await expect(pill).toBeHidden();
});

test('the list fits a telephone, in the dark', async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 800 });
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.goto(`${url}/?lang=ja`);
  await expect(page.locator('[data-run]').first()).toBeVisible();
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
  await page.waitForTimeout(500);
  expect(await overflow(page)).toBeLessThanOrEqual(0);
  expect(await accessProblems(page)).toEqual([]);
  await shot(page, 'runs-small-dark');
});
