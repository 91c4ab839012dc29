// The pyoco-client command that does the same as what is on screen.

/** A word as a POSIX shell reads it back. */
export function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** `pyoco-client` with these words; values that are not given are left out. */
export function clientCommand(origin: string, ...words: (string | null | undefined | false)[]): string {
  const server = origin === 'http://127.0.0.1:8000' || origin === 'http://localhost:8000' ? [] : ['--server', origin];
  const given = words.filter((word): word is string => typeof word === 'string' && word !== '');
  return ['pyoco-client', ...server, ...given].map(quote).join(' ');
}

/** `--name value`, or nothing when there is no value. */
export const option = (name: string, value: string | null | undefined): string[] => (value ? [name, value] : []);
