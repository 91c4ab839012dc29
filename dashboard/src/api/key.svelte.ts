// The API key: asked for once, kept for this tab only, sent as a header and never put into an address.

const PLACE = 'pyoco.api-key';

function stored(): string {
  try {
    return sessionStorage.getItem(PLACE) ?? '';
  } catch {
    return '';
  }
}

class ApiKey {
  value = $state(stored());
  /** The server wants a key, or another one: the page asks for it. */
  isAskedFor = $state(false);
  /** The key that was sent was refused. */
  wasRefused = $state(false);
  #waiting: (() => void)[] = [];

  set(key: string): void {
    this.value = key.trim();
    this.isAskedFor = false;
    this.wasRefused = false;
    try {
      if (this.value) sessionStorage.setItem(PLACE, this.value);
      else sessionStorage.removeItem(PLACE);
    } catch {
      // Without storage the key lives as long as the page.
    }
    for (const resume of this.#waiting.splice(0)) resume();
  }

  ask(refused: boolean): void {
    this.isAskedFor = true;
    this.wasRefused = refused;
  }

  /** Ends when somebody has given a key; at once if none is asked for. */
  async given(): Promise<void> {
    if (this.isAskedFor) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }
}

export const apiKey = new ApiKey();
