// A log as rows that can be asked for in any order. Two kinds of it: all lines, and those that a filter lets through.
import type { LogEntry } from '../../api/types';

export interface LogSource {
  /** How many rows there are so far. */
  readonly total: number;
  /** A row, if it is at hand; who shows it is told when it comes. */
  get(row: number): LogEntry | undefined;
  /** Changes whenever rows came to hand. */
  readonly version: number;
  /** The server did not answer the last time. */
  readonly isLost: boolean;
  /** Brings rows to hand. */
  ensure(from: number, to: number): void;
  /** All rows from the first on, page by page. */
  scan(signal: AbortSignal): AsyncGenerator<{ firstRow: number; entries: LogEntry[] }>;
  /** Keeps up with the log until the signal. */
  follow(signal: AbortSignal): Promise<void>;
  /** The row of a line number; -1 if it is not among them as far as is known. */
  rowOf(seq: number): number;
}

/** A map that forgets what was not used for longest. */
export class Recent<K, V> {
  #map = new Map<K, V>();
  constructor(readonly most: number) {}

  get size(): number {
    return this.#map.size;
  }

  get(key: K): V | undefined {
    const value = this.#map.get(key);
    if (value !== undefined) {
      this.#map.delete(key);
      this.#map.set(key, value);
    }
    return value;
  }

  has(key: K): boolean {
    return this.#map.has(key);
  }

  set(key: K, value: V): void {
    this.#map.delete(key);
    this.#map.set(key, value);
    for (const oldest of this.#map.keys()) {
      if (this.#map.size <= this.most) return;
      this.#map.delete(oldest);
    }
  }
}
