// Puts compressed forms beside the built files, so that the server has nothing to compress while it answers. index.html has none: the server writes into it.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import type { Plugin } from 'vite';

/** A form that is hardly smaller is not worth a choice. */
const WORTH = 0.95;

export function compress(folder: string): Plugin {
  return {
    name: 'compress',
    apply: 'build',
    writeBundle({ dir }) {
      const place = join(dir ?? 'dist', folder);
      for (const name of readdirSync(place)) {
        const plain = readFileSync(join(place, name));
        const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY, [constants.BROTLI_PARAM_SIZE_HINT]: plain.length };
        const forms = { br: brotliCompressSync(plain, { params }), gz: gzipSync(plain, { level: 9 }) };
        for (const [ending, bytes] of Object.entries(forms)) {
          if (bytes.length < plain.length * WORTH) writeFileSync(join(place, `${name}.${ending}`), bytes);
        }
      }
    },
  };
}
