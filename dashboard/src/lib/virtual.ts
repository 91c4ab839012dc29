// Which rows of a long list are in sight. Browsers refuse elements higher than some ten million pixels, so a list that would be
// higher is squeezed: its scroll bar then covers more than one pixel of rows with each of its own.

export const HIGHEST_PX = 8_000_000;

export interface Sight {
  /** The first row to draw, and the one behind the last. */
  from: number;
  to: number;
  /** Where the first drawn row stands in the scrolled content. */
  top: number;
}

export const contentHeight = (count: number, rowHeight: number) => Math.min(count * rowHeight, HIGHEST_PX);

export function sight(scrollTop: number, viewHeight: number, count: number, rowHeight: number, margin = 6): Sight {
  const height = contentHeight(count, rowHeight);
  const scrollable = Math.max(1, height - viewHeight);
  const rowsBefore = Math.max(0, count - viewHeight / rowHeight);
  const at = height < HIGHEST_PX ? scrollTop / rowHeight : Math.min(1, scrollTop / scrollable) * rowsBefore;
  const from = Math.max(0, Math.floor(at) - margin);
  const to = Math.min(count, Math.ceil(at + viewHeight / rowHeight) + margin);
  return { from, to, top: scrollTop - (at - from) * rowHeight };
}

/** Where to scroll so that a row is the first in sight. */
export function scrollTopOf(row: number, viewHeight: number, count: number, rowHeight: number): number {
  const height = contentHeight(count, rowHeight);
  if (height < HIGHEST_PX) return Math.min(row * rowHeight, Math.max(0, height - viewHeight));
  const rowsBefore = Math.max(1, count - viewHeight / rowHeight);
  return Math.min(1, row / rowsBefore) * (height - viewHeight);
}
