import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { en } from '../src/i18n/en';
import { chooseLang, fill, language, t, tName } from '../src/i18n/index.svelte';
import { ja } from '../src/i18n/ja';

const holes = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map((match) => match[1]).sort();

describe('the dictionaries', () => {
  it('have the same keys, none of them empty', () => {
    expect(Object.keys(ja).sort()).toEqual(Object.keys(en).sort());
    for (const text of [...Object.values(en), ...Object.values(ja)]) expect(text.trim()).not.toBe('');
  });

  it('fill the same holes', () => {
    for (const [key, text] of Object.entries(en)) expect([key, holes(ja[key as keyof typeof en])]).toEqual([key, holes(text)]);
  });

  it('have no key that nothing uses', () => {
    const source = readdirSync('src', { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.(ts|svelte)$/.test(file) && !file.startsWith('i18n') && !file.endsWith('.d.ts'))
      .map((file) => readFileSync(join('src', file), 'utf8'))
      .join('\n');
    // Keys that are put together: `status.` with whatever the server says, and so on.
    const made = ['status.', 'kind.', 'nav.', 'theme.', 'explain.', 'run.tab.', 'runs.time.', 'wheels.action.', 'metrics.reason.'];
    const unused = Object.keys(en).filter((key) => !source.includes(`'${key}'`) && !made.some((prefix) => key.startsWith(prefix)));
    expect(unused).toEqual([]);
  });

  it('say Japanese in Japanese', () => {
    const same = Object.keys(en).filter((key) => en[key as keyof typeof en] === ja[key as keyof typeof en]);
    expect(same).toEqual(['wheels.col.sha']);
  });
});

describe('the language', () => {
  afterEach(() => language.set('en'));

  it('is the asked one, else the chosen, else the server’s, else the browser’s', () => {
    expect(chooseLang('?lang=ja', 'en', 'en', ['en'])).toBe('ja');
    expect(chooseLang('?lang=xx', 'ja', 'en', ['en'])).toBe('ja');
    expect(chooseLang('', null, 'ja', ['en'])).toBe('ja');
    expect(chooseLang('', null, 'auto', ['fr-FR', 'ja-JP'])).toBe('ja');
    expect(chooseLang('', null, 'auto', ['fr'])).toBe('en');
  });

  it('changes what is said at once', () => {
    expect(t('nav.runs')).toBe('Runs');
    language.set('ja');
    expect(t('nav.runs')).toBe('実行');
    expect(document.documentElement.lang).toBe('ja');
  });

  it('keeps a name of the server that it has no word for', () => {
    expect(tName('status', 'SOMETHING_NEW')).toBe('SOMETHING_NEW');
    expect(fill('{a} {b}', { a: '{b}' })).toBe('{b} {b}');
  });
});
