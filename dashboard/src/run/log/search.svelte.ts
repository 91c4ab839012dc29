// Finds a text in a log, however long it is: page by page, while the reader already walks through what was found.
import { plainText } from './ansi';
import type { LogSource } from './source';

/** More matches than this nobody walks through. */
export const MOST_HITS = 10_000;

export class LogSearch {
  text = $state('');
  /** Rows with a match, in their order. */
  hits = $state.raw<number[]>([]);
  at = $state(-1);
  percent = $state(0);
  isBusy = $state(false);
  isCutOff = $state(false);
  #control: AbortController | null = null;

  /** The row of the match that the reader is at. */
  get row(): number {
    return this.hits[this.at] ?? -1;
  }

  stop(): void {
    this.#control?.abort();
    this.#control = null;
    this.isBusy = false;
  }

  async start(source: LogSource, text: string): Promise<void> {
    this.stop();
    this.text = text;
    this.hits = [];
    this.at = -1;
    this.percent = 0;
    this.isCutOff = false;
    if (text === '') return;
    const control = new AbortController();
    this.#control = control;
    this.isBusy = true;
    const wanted = text.toLowerCase();
    try {
      for await (const { firstRow, entries } of source.scan(control.signal)) {
        if (control.signal.aborted) return;
        const found: number[] = [];
        entries.forEach((entry, offset) => {
          if (plainText(entry.message).toLowerCase().includes(wanted)) found.push(firstRow + offset);
        });
        if (found.length > 0) {
          this.hits = [...this.hits, ...found].slice(0, MOST_HITS);
          if (this.at < 0) this.at = 0;
        }
        this.percent = Math.min(100, Math.round((100 * (firstRow + entries.length)) / Math.max(1, source.total)));
        if (this.hits.length >= MOST_HITS) {
          this.isCutOff = true;
          return;
        }
      }
    } catch {
      // What was found so far stays.
    } finally {
      if (this.#control === control) this.isBusy = false;
    }
  }

  step(by: 1 | -1): void {
    const count = this.hits.length;
    if (count > 0) this.at = (this.at + by + count) % count;
  }
}
