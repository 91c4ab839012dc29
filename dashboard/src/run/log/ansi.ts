// Colours of terminals. A task may have written escape sequences: those that colour become classes, all others are shown as text.

export interface Piece {
  text: string;
  /** `ansi-1` … for colours, `bold`. */
  classes: string;
}

// Escape sequences of the form CSI … letter.
const sequence = /\u001b\[([0-9;]*)([A-Za-z])/g;

/** A character that would move the cursor, or turn the direction of text, is shown by its name instead. */
function visible(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f\u202a-\u202e\u2066-\u2069]/g, (char) => {
    const code = char.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : `\\u{${code.toString(16)}}`;
  });
}

/** What a terminal would show of a line that a progress bar overwrote again and again: the last state. */
function overwritten(message: string): string {
  const line = message.endsWith('\r') ? message.slice(0, -1) : message;
  const at = line.lastIndexOf('\r');
  return at < 0 ? line : line.slice(at + 1);
}

export const plainText = (message: string): string => visible(overwritten(message).replace(sequence, ''));

export function pieces(message: string): Piece[] {
  const line = overwritten(message);
  if (!line.includes('\u001b[')) return [{ text: visible(line), classes: '' }];
  const found: Piece[] = [];
  let colour = '';
  let isBold = false;
  let from = 0;
  const push = (text: string) => {
    if (text) found.push({ text: visible(text), classes: [colour, isBold ? 'bold' : ''].filter(Boolean).join(' ') });
  };
  for (const match of line.matchAll(sequence)) {
    push(line.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[2] !== 'm') continue;
    for (const code of (match[1] || '0').split(';').map(Number)) {
      if (code === 0) [colour, isBold] = ['', false];
      else if (code === 1) isBold = true;
      else if (code === 22) isBold = false;
      else if (code === 39) colour = '';
      else if (code >= 30 && code <= 37) colour = `ansi-${code - 30}`;
      else if (code >= 90 && code <= 97) colour = `ansi-${code - 90}`;
    }
  }
  push(line.slice(from));
  return found;
}

/** Cuts a text at the places where a word stands, so that they can be marked. */
export function marked(text: string, word: string): { text: string; isHit: boolean }[] {
  if (word === '') return [{ text, isHit: false }];
  const parts: { text: string; isHit: boolean }[] = [];
  const low = text.toLowerCase();
  const wanted = word.toLowerCase();
  let from = 0;
  for (let at = low.indexOf(wanted); at >= 0; at = low.indexOf(wanted, from)) {
    if (at > from) parts.push({ text: text.slice(from, at), isHit: false });
    parts.push({ text: text.slice(at, at + word.length), isHit: true });
    from = at + word.length;
  }
  if (from < text.length) parts.push({ text: text.slice(from), isHit: false });
  return parts;
}
