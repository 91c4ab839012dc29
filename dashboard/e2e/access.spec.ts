// API keys, and a server that comes and goes.
import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { Ground } from './ground';
import { accessProblems, expect, test } from './page';
import { wireTo } from './wire';

test('a key is asked for once, kept for the tab and sent with every request', async ({ page }) => {
  const ground = await Ground.start({ PYOCO_HTTP_AUTH_MODE: 'api_key' });
  try {
    const admin = join(dirname(process.env.PYOCO_SERVER_BIN ?? ''), 'pyoco-server-admin');
    const made = execFileSync(admin, ['api-key', 'create', '--tenant', 'team-a', '--data-dir', join(ground.folder, 'data')]).toString();
    const key = (JSON.parse(made) as { api_key: string }).api_key;
    const id = await ground.submit('slow', {}, { 'x-api-key': key });
    await page.goto(`${ground.url}/#/runs/${id}?tab=log`);
    const dialog = page.getByRole('dialog');
    await expect(dialog).toContainText('API key');
    expect(await accessProblems(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await expect(dialog).toBeVisible();
    await dialog.getByLabel('Key').fill('pyoco_wrong.key');
    await dialog.getByRole('button').click();
    await expect(dialog).toContainText('did not accept that key');
    await dialog.getByLabel('Key').fill(key);
    await dialog.getByRole('button').click();
    await expect(page.getByRole('log').getByText('tick 3', { exact: true })).toBeVisible();
    await page.reload();
    await expect(page.getByRole('log').getByText('tick 3', { exact: true })).toBeVisible();
    await expect(dialog).toHaveCount(0);
    expect(page.url()).not.toContain(key.slice(-12));
    await page.getByRole('button', { name: 'Forget the API key' }).click();
    await expect(dialog).toBeVisible();
  } finally {
    await ground.close();
  }
});

test('a lost connection is told, and heals without a reload', async ({ page }) => {
  const ground = await Ground.start();
  const wire = await wireTo(ground.url);
  try {
    const slow = await ground.submit('slow');
    await page.goto(`${wire.url}/#/runs/${slow}?tab=log`);
    const log = page.getByRole('log');
    await expect(log.getByText('tick 5', { exact: true })).toBeVisible();
    wire.cut(true);
    await expect(page.getByRole('alert')).toContainText('No connection to the server');
    wire.cut(false);
    await expect(page.getByRole('alert')).toHaveCount(0, { timeout: 20_000 });
    await expect(log.getByText('tick 60', { exact: true })).toBeVisible({ timeout: 20_000 });
    // No line is missing and none is there twice.
    const seqs = (await log.locator('.seq').allTextContents()).map(Number);
    expect(seqs).toEqual(seqs.map((_, n) => (seqs[0] ?? 0) + n));

    await page.goto(`${wire.url}/#/runs`);
    await expect(page.locator(`[data-run="${slow}"]`)).toBeVisible();
    wire.cut(true);
    await expect(page.getByRole('alert')).toBeVisible();
    const next = await ground.submit('hello');
    wire.cut(false);
    await expect(page.locator(`[data-run="${next}"]`)).toBeVisible({ timeout: 20_000 });
    await expect(page.getByRole('alert')).toHaveCount(0);
  } finally {
    await wire.close();
    await ground.close();
  }
});
