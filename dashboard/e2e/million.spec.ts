// A log of a million lines. Takes a while to write, so it is only done when asked for: PYOCO_E2E_LINES=1000000.
import { Ground } from './ground';
import { expect, test } from './page';

const LINES = Number(process.env.PYOCO_E2E_LINES ?? 0);

test('a log of a million lines stays smooth', async ({ page }) => {
  test.skip(LINES === 0, 'PYOCO_E2E_LINES says how many');
  test.setTimeout(600_000);
  const ground = await Ground.start({ PYOCO_RUN_LOG_MAX_BYTES: '268435456' });
  try {
    const id = await ground.submitYaml('chatty.yaml', 'chatty', String(LINES));
    await expect.poll(() => ground.status(id), { timeout: 500_000 }).toBe('COMPLETED');
    await page.goto(`${ground.url}/#/runs/${id}?tab=log`);
    const log = page.getByRole('log');
    const start = Date.now();
    await expect(log.getByText(`line ${LINES} of many`)).toBeVisible();
    const end = Date.now() - start;
    // Scrolls through all of it and counts the frames that took long.
    const slow = await log.evaluate(async (view) => {
      const frames: number[] = [];
      let last = performance.now();
      for (let step = 0; step <= 120; step += 1) {
        view.scrollTop = (view.scrollHeight * step) / 120;
        await new Promise(requestAnimationFrame);
        frames.push(performance.now() - last);
        last = performance.now();
      }
      frames.sort((a, b) => a - b);
      return { p50: frames[60], p95: frames[114], max: frames.at(-1) };
    });
    await log.evaluate((view) => (view.scrollTop = view.scrollHeight / 2));
    const jumped = Date.now();
    await expect(log.locator('.message').first()).toBeVisible();
    const session = await page.context().newCDPSession(page);
    await session.send('HeapProfiler.collectGarbage');
    const { usedSize } = (await session.send('Runtime.getHeapUsage')) as { usedSize: number };
    console.log(`${LINES} lines: the end was there after ${end} ms, the middle after ${Date.now() - jumped} ms; frames ${JSON.stringify(slow)}; heap ${(usedSize / 1048576).toFixed(1)} MiB`);
    const searched = Date.now();
    await page.getByPlaceholder('Search in the log').fill(`line ${LINES - 1} of`);
    await expect(log.getByText(`line ${LINES - 1} of many`)).toBeVisible({ timeout: 120_000 });
    console.log(`the last but one was found after ${Date.now() - searched} ms`);
    expect(usedSize / 1048576).toBeLessThan(60);
  } finally {
    await ground.close();
  }
});
