// Where we are. The server serves the page at `/` only, so places live behind the `#`: `/#/runs?status=FAILED`.

export interface Place {
  path: string[];
  query: Record<string, string>;
}

export function parsePlace(hash: string): Place {
  const [path = '', search = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const decode = (part: string) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  };
  const query: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(search)) query[name] = value;
  return { path: path.split('/').filter(Boolean).map(decode), query };
}

export function formatPlace(path: string[], query: Record<string, string | null | undefined> = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) search.set(name, value);
  const text = search.toString();
  return `#/${path.map(encodeURIComponent).join('/')}${text ? `?${text}` : ''}`;
}

class Router {
  place = $state.raw<Place>(parsePlace(location.hash));

  constructor() {
    addEventListener('hashchange', () => (this.place = parsePlace(location.hash)));
  }

  go(path: string[], query: Record<string, string | null | undefined> = {}): void {
    location.hash = formatPlace(path, query);
  }

  /** Changes the query of the place where we are, without a step in the browser's history. */
  refine(changes: Record<string, string | null>): void {
    const query: Record<string, string | null> = { ...this.place.query, ...changes };
    const hash = formatPlace(this.place.path, query);
    history.replaceState(history.state, '', hash);
    this.place = parsePlace(hash);
  }
}

export const router = new Router();
