// Which language the page speaks, and how it says things in it.
import { settings } from '../lib/settings';
import { recall, remember } from '../lib/memory';
import { en, type Dictionary, type Key } from './en';
import { ja } from './ja';

export type Lang = 'en' | 'ja';
export const dictionaries: Record<Lang, Dictionary> = { en, ja };

export function asLang(text: string | null | undefined): Lang | null {
  const start = text?.toLowerCase().slice(0, 2);
  return start === 'ja' || start === 'en' ? start : null;
}

/** `?lang=` wins, then what was chosen here before, then what the server says, then the browser. */
export function chooseLang(search: string, remembered: string | null, server: string, browser: readonly string[]): Lang {
  const asked = asLang(new URLSearchParams(search).get('lang'));
  return asked ?? asLang(remembered) ?? asLang(server) ?? browser.map(asLang).find((lang) => lang !== null) ?? 'en';
}

export function fill(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

class Language {
  current = $state<Lang>(chooseLang(location.search, recall('lang'), settings.lang, navigator.languages));

  constructor() {
    document.documentElement.lang = this.current;
  }

  set(lang: Lang): void {
    this.current = lang;
    remember('lang', lang);
    document.documentElement.lang = lang;
    // An address with ?lang= would win over the choice at the next reload.
    const url = new URL(location.href);
    if (url.searchParams.has('lang')) {
      url.searchParams.set('lang', lang);
      history.replaceState(history.state, '', url);
    }
  }
}

export const language = new Language();

export function t(key: Key, values: Record<string, string | number> = {}): string {
  return fill(dictionaries[language.current][key], values);
}

/** Words for something whose name the server chose; the name itself where there are none. */
export function tName(prefix: string, name: string): string {
  const key = `${prefix}.${name}`;
  return key in en ? t(key as Key) : name;
}
