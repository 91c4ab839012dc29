import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';
import { compress } from './compress.ts';

// Where `npm run dev` finds an API: a server that runs beside it.
const api = process.env.PYOCO_SERVER_URL ?? 'http://127.0.0.1:8000';
const apiPaths = ['/runs', '/executions', '/jobs', '/waits', '/workers', '/wheels', '/metrics', '/health', '/tags', '/graphs'];

export default defineConfig(({ mode }) => ({
  plugins: [svelte(), compress('static')],
  // Tests mount components, which needs the browser's half of Svelte.
  resolve: mode === 'test' ? { conditions: ['browser'] } : {},
  build: {
    target: 'es2022',
    assetsDir: 'static',
    // Nothing is inlined: the content security policy of the server allows files of its own only.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // What the libraries in the bundle ask to be said of them.
    license: { fileName: 'static/licenses.txt' },
    rollupOptions: {
      output: {
        entryFileNames: 'static/[name].[hash].js',
        chunkFileNames: 'static/[name].[hash].js',
        assetFileNames: 'static/[name].[hash][extname]',
      },
    },
  },
  server: { proxy: Object.fromEntries(apiPaths.map((path) => [path, { target: api, changeOrigin: true }])) },
  test: { include: ['tests/**/*.test.ts'], environment: 'jsdom' },
}));
