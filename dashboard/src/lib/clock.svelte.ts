// The time as the server has it. Ages and STALE would lie on a machine whose clock is off.

class Clock {
  /** Seconds to add to the clock of this machine. */
  #offset = 0;
  /** Unix seconds, once a second: what pages show ages by. */
  now = $state(Date.now() / 1000);

  constructor() {
    setInterval(() => {
      if (!document.hidden) this.now = this.exact();
    }, 1000);
  }

  exact(): number {
    return Date.now() / 1000 + this.#offset;
  }

  /** Takes the `Date` of an answer. It has whole seconds and took some time, so small differences say nothing. */
  hear(date: string | null): void {
    if (!date) return;
    const server = Date.parse(date) / 1000;
    if (Number.isNaN(server)) return;
    const difference = server - Date.now() / 1000;
    this.#offset = Math.abs(difference) > 3 ? difference : 0;
  }
}

export const clock = new Clock();
