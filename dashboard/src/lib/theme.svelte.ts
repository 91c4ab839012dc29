// Light, dark, or as the system has it.
import { recall, remember } from './memory';

export type Theme = 'auto' | 'light' | 'dark';
const themes: readonly Theme[] = ['auto', 'light', 'dark'];

class ThemeChoice {
  choice = $state<Theme>(themes.find((theme) => theme === recall('theme')) ?? 'auto');
  #dark = matchMedia('(prefers-color-scheme: dark)');
  isDark = $state(false);

  constructor() {
    this.#apply();
    this.#dark.addEventListener('change', () => this.#apply());
  }

  next(): void {
    this.choice = themes[(themes.indexOf(this.choice) + 1) % themes.length] ?? 'auto';
    remember('theme', this.choice === 'auto' ? null : this.choice);
    this.#apply();
  }

  #apply(): void {
    this.isDark = this.choice === 'dark' || (this.choice === 'auto' && this.#dark.matches);
    document.documentElement.dataset.theme = this.isDark ? 'dark' : 'light';
  }
}

export const theme = new ThemeChoice();
