// Small choices that outlive the tab. A browser that keeps nothing is no error.

export function recall(name: string): string | null {
  try {
    return localStorage.getItem(`pyoco.${name}`);
  } catch {
    return null;
  }
}

export function remember(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(`pyoco.${name}`);
    else localStorage.setItem(`pyoco.${name}`, value);
  } catch {
    // Then it is forgotten with the page.
  }
}
