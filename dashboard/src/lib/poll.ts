// Repeats something while the tab is seen: at its pace when it works, ever slower while it fails.

const SLOWEST_MS = 10_000;

/** Waits, but no longer than until the signal; resolves either way. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });
}

/** Resolves when the tab can be seen. A hidden tab asks nothing and holds no connection. */
export function seen(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (!document.hidden || signal.aborted) return resolve();
    const look = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener('visibilitychange', look);
      signal.removeEventListener('abort', look);
      resolve();
    };
    document.addEventListener('visibilitychange', look);
    signal.addEventListener('abort', look);
  });
}

/** Does something for as long as the tab is seen and the signal lets it. A browser has six connections to a server for all of its tabs:
 * those that nobody sees give theirs back. */
export async function whileSeen(outer: AbortSignal, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const control = new AbortController();
  const stop = () => control.abort();
  const look = () => document.hidden && control.abort();
  outer.addEventListener('abort', stop);
  document.addEventListener('visibilitychange', look);
  try {
    await work(control.signal);
  } catch (error) {
    if (!control.signal.aborted) throw error;
  } finally {
    outer.removeEventListener('abort', stop);
    document.removeEventListener('visibilitychange', look);
  }
}

/** How long to wait before the next try, after so many failures in a row. */
export function backoff(failures: number, baseMs: number): number {
  const wait = Math.min(baseMs * 2 ** Math.min(failures, 6), Math.max(SLOWEST_MS, baseMs));
  // Tabs that lost the same server should not all come back in the same moment.
  return failures === 0 ? baseMs : wait * (0.75 + Math.random() / 2);
}

/** Does `once` again and again until the returned function is called. */
export function poll(intervalMs: number, once: (signal: AbortSignal) => Promise<void>): () => void {
  const control = new AbortController();
  const { signal } = control;
  void (async () => {
    let failures = 0;
    while (!signal.aborted) {
      await seen(signal);
      if (signal.aborted) return;
      try {
        await once(signal);
        failures = 0;
      } catch {
        failures += 1;
      }
      await pause(backoff(failures, intervalMs), signal);
    }
  })();
  return () => control.abort();
}
