// Times and numbers for people, in the language of the page.
import type { Lang } from '../i18n/index.svelte';

const units: Record<Lang, { ms: string; s: string; min: string; h: string; d: string; gap: string }> = {
  en: { ms: 'ms', s: 's', min: 'min', h: 'h', d: 'd', gap: ' ' },
  ja: { ms: 'ミリ秒', s: '秒', min: '分', h: '時間', d: '日', gap: ' ' },
};

/** How long something took, with two units at most. */
export function formatDuration(seconds: number, lang: Lang): string {
  const unit = units[lang];
  const one = (value: number | string, name: string) => `${value}${unit.gap}${name}`;
  if (!Number.isFinite(seconds)) return '–';
  const total = Math.max(0, seconds);
  if (total < 0.9995) return one(Math.round(total * 1000), unit.ms);
  if (total < 9.95) return one(total.toFixed(1), unit.s);
  const whole = Math.round(total);
  if (whole < 60) return one(whole, unit.s);
  const two = (big: number, bigName: string, small: number, smallName: string) =>
    small === 0 ? one(big, bigName) : `${one(big, bigName)} ${one(small, smallName)}`;
  if (whole < 3600) return two(Math.floor(whole / 60), unit.min, whole % 60, unit.s);
  if (whole < 86_400) return two(Math.floor(whole / 3600), unit.h, Math.floor((whole % 3600) / 60), unit.min);
  return two(Math.floor(whole / 86_400), unit.d, Math.floor((whole % 86_400) / 3600), unit.h);
}

/** An age with one unit: what changes every second is hard to read. */
export function formatAge(seconds: number, lang: Lang): string {
  const total = Math.max(0, Math.floor(seconds));
  if (total < 60) return formatDuration(Math.max(total, 1), lang).replace('.0', '');
  if (total < 3600) return formatDuration(Math.floor(total / 60) * 60, lang);
  if (total < 86_400) return formatDuration(Math.floor(total / 3600) * 3600, lang);
  return formatDuration(Math.floor(total / 86_400) * 86_400, lang);
}

const cache = new Map<string, Intl.DateTimeFormat>();

function dateFormat(lang: Lang, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const name = lang + JSON.stringify(options);
  let format = cache.get(name);
  if (!format) cache.set(name, (format = new Intl.DateTimeFormat(lang === 'ja' ? 'ja-JP' : 'en-GB', options)));
  return format;
}

/** A moment with its date, to the second. */
export function formatMoment(unix: number, lang: Lang): string {
  return dateFormat(lang, {
    year: 'numeric', month: lang === 'ja' ? 'numeric' : 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit',
  }).format(unix * 1000);
}

/** The time of day, to the millisecond: for lines that follow each other. */
export function formatTimeOfDay(unix: number, lang: Lang): string {
  return dateFormat(lang, {
    hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3, hourCycle: 'h23',
  }).format(unix * 1000);
}

export function formatNumber(value: number, lang: Lang, digits = 0): string {
  return new Intl.NumberFormat(lang === 'ja' ? 'ja-JP' : 'en-GB', { maximumFractionDigits: digits }).format(value);
}

export function formatBytes(bytes: number, lang: Lang): string {
  const names = ['B', 'KiB', 'MiB', 'GiB'];
  let value = bytes;
  let step = 0;
  while (value >= 1024 && step < names.length - 1) {
    value /= 1024;
    step += 1;
  }
  return `${formatNumber(value, lang, step === 0 ? 0 : 1)} ${names[step]}`;
}

/** Seconds since 1970 of an RFC 3339 text; null if it is none. */
export function unixOf(text: string | null | undefined): number | null {
  const milliseconds = text ? Date.parse(text) : Number.NaN;
  return Number.isNaN(milliseconds) ? null : milliseconds / 1000;
}
