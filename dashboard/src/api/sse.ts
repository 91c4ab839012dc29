// Server-sent events over fetch. EventSource cannot send an API key in a header, so the stream is read by hand.

export interface ServerSentEvent {
  id: string | null;
  event: string;
  data: string;
}

/** Cuts a text stream into events. Feed it pieces of any size; a piece may end in the middle of a line. */
export class SseParser {
  #rest = '';
  #id: string | null = null;
  #event = '';
  #data: string[] = [];

  feed(piece: string): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    let text = this.#rest + piece;
    // A carriage return at the very end may be the first half of a line break.
    let held = '';
    if (text.endsWith('\r')) {
      held = '\r';
      text = text.slice(0, -1);
    }
    const lines = text.split(/\r\n|\n|\r/);
    this.#rest = (lines.pop() ?? '') + held;
    for (const line of lines) {
      const event = this.#line(line);
      if (event) events.push(event);
    }
    return events;
  }

  #line(line: string): ServerSentEvent | null {
    if (line === '') {
      const event = { id: this.#id, event: this.#event || 'message', data: this.#data.join('\n') };
      const isEmpty = this.#data.length === 0;
      this.#id = null;
      this.#event = '';
      this.#data = [];
      return isEmpty ? null : event;
    }
    if (line.startsWith(':')) return null;
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') this.#data.push(value);
    else if (field === 'event') this.#event = value;
    else if (field === 'id') this.#id = value;
    return null;
  }
}

/** The events of a response body, until it ends or the reader stops asking. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new SseParser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* parser.feed(decoder.decode(value, { stream: true }));
    }
  } finally {
    // Whoever leaves the loop early must not keep one of the browser's few connections.
    await reader.cancel().catch(() => undefined);
  }
}
