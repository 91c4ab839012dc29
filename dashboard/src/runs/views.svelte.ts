// Views that somebody saved: a name for a filter, kept in this browser.
import { recall, remember } from '../lib/memory';

export interface View {
  name: string;
  query: Record<string, string>;
}

const MOST = 30;

export function readViews(text: string | null): View[] {
  try {
    const views: unknown = JSON.parse(text ?? '[]');
    if (!Array.isArray(views)) return [];
    return views
      .filter((view): view is View => typeof view?.name === 'string' && typeof view?.query === 'object' && view.query !== null)
      .map(({ name, query }) => ({
        name,
        query: Object.fromEntries(Object.entries(query).filter(([, value]) => typeof value === 'string')),
      }));
  } catch {
    return [];
  }
}

class SavedViews {
  all = $state.raw<View[]>(readViews(recall('views')));

  save(name: string, query: Record<string, string>): void {
    this.#keep([...this.all.filter((view) => view.name !== name), { name, query }].slice(-MOST));
  }

  remove(name: string): void {
    this.#keep(this.all.filter((view) => view.name !== name));
  }

  #keep(views: View[]): void {
    this.all = views;
    remember('views', JSON.stringify(views));
  }
}

export const savedViews = new SavedViews();
