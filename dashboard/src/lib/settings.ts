// What the server wrote into the page when it served it. A placeholder that nobody replaced counts as not given.

function meta(name: string): string | null {
  const content = document.querySelector(`meta[name="${name}"]`)?.getAttribute('content') ?? '';
  return content === '' || content.startsWith('__PYOCO_') ? null : content;
}

export const settings = {
  lang: meta('pyoco-lang') ?? 'auto',
  hasActions: meta('pyoco-actions') === '1',
  apiKeyHeader: meta('pyoco-api-key-header') ?? 'X-API-Key',
};
