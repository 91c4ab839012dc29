// What the page can do where PYOCO_DASHBOARD_ACTIONS lets it.
import { Ground } from './ground';
import { accessProblems, expect, test } from './page';

let ground: Ground;

test.beforeAll(async () => {
  ground = await Ground.start({ PYOCO_DASHBOARD_ACTIONS: '1' });
});
test.afterAll(() => ground.close());

test('a wait is answered, after a question', async ({ page }) => {
  const id = await ground.submit('approval');
  await page.goto(`${ground.url}/#/waits`);
  const item = page.getByRole('listitem').filter({ hasText: id.slice(0, 8) });
  await item.getByRole('button', { name: 'Answer' }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByLabel('Answer, as JSON')).toHaveValue(/"approved": true/);
  await dialog.getByLabel('Answer, as JSON').fill('{"approved": ');
  await expect(dialog.getByRole('button', { name: 'Send the answer' })).toBeDisabled();
  await dialog.getByLabel('Answer, as JSON').fill('{"approved": true, "by": "Grace"}');
  expect(await accessProblems(page)).toEqual([]);
  await dialog.getByRole('button', { name: 'Send the answer' }).click();
  await expect(item).toHaveCount(0);
  await ground.reached(id, 'COMPLETED');
  const execution = (await (await fetch(`${ground.url}/executions/${id}`)).json()) as { nodes: { nodeId: string; output: unknown }[] };
  expect(execution.nodes.find((node) => node.nodeId === 'approve')?.output).toEqual({ approved: true, by: 'Grace' });
});

test('a run is cancelled, and run again, after a question', async ({ page }) => {
  const id = await ground.submit('slow');
  await page.goto(`${ground.url}/#/runs/${id}`);
  await page.getByRole('button', { name: 'Cancel the run' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Do nothing' }).click();
  expect(await ground.status(id)).not.toContain('CANCEL');
  await page.getByRole('button', { name: 'Cancel the run' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel the run' }).click();
  await expect(page.getByText('It was cancelled.')).toBeVisible();
  await page.getByRole('button', { name: 'Run again' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Run again' }).click();
  await expect(page).not.toHaveURL(new RegExp(id));
  await expect(page.getByRole('link', { name: id.slice(0, 8) })).toBeVisible();
  await page.getByRole('button', { name: 'Cancel the run' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel the run' }).click();
  await expect(page.getByText('It was cancelled.')).toBeVisible();
});

test('a worker is hidden and shown again, after a question', async ({ page }) => {
  await page.goto(`${ground.url}/#/workers`);
  const row = page.locator('[data-worker="worker"]');
  await row.getByRole('button', { name: 'Hide' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Hide' }).click();
  await expect(row).toHaveCount(0);
  await page.getByLabel('Also hidden ones').check();
  await expect(row.getByText('hidden')).toBeVisible();
  await row.getByRole('button', { name: 'Show again' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Show again' }).click();
  await expect(row.getByRole('button', { name: 'Hide' })).toBeVisible();
});
