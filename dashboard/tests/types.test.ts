// @vitest-environment node
import { readFileSync } from 'node:fs';
import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript';
import { expect, it } from 'vitest';

it('the types are those of openapi.json: run `npm run types` after it has changed', async () => {
  const made = COMMENT_HEADER + astToString(await openapiTS(readFileSync('openapi.json', 'utf8')));
  expect(readFileSync('src/api/schema.d.ts', 'utf8')).toBe(made);
}, 60_000);
