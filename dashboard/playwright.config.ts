import { execFileSync } from 'node:child_process';
import { defineConfig } from '@playwright/test';

// The browser of the system: none is ever downloaded.
const find = 'for name in chromium chromium-browser google-chrome; do command -v $name && exit; done; exit 1';
const chromium = process.env.CHROMIUM ?? execFileSync('sh', ['-c', find]).toString().trim();

export default defineConfig({
  testDir: 'e2e',
  fullyParallel: false,
  workers: 1,
  retries: 0,
  timeout: 60_000,
  expect: { timeout: 10_000 },
  reporter: [['list']],
  outputDir: 'test-results',
  use: {
    viewport: { width: 1360, height: 850 },
    locale: 'en-GB',
    timezoneId: 'UTC',
    trace: 'off',
    launchOptions: { executablePath: chromium, args: ['--no-sandbox'] },
  },
});
