import { describe, expect, it } from 'vitest';
import { readEvents, SseParser } from '../src/api/sse';

const stream = (...pieces: string[]) =>
  new ReadableStream<Uint8Array>({
    start(control) {
      for (const piece of pieces) control.enqueue(new TextEncoder().encode(piece));
      control.close();
    },
  });

describe('server-sent events', () => {
  it('are the same wherever the stream was cut', () => {
    const text = 'id: 7\r\nevent: snapshot\r\ndata: {"a":1}\r\n\r\n: sign of life\n\ndata: one\ndata: two\n\n';
    const whole = new SseParser().feed(text);
    expect(whole).toEqual([
      { id: '7', event: 'snapshot', data: '{"a":1}' },
      { id: null, event: 'message', data: 'one\ntwo' },
    ]);
    for (let cut = 1; cut < text.length; cut += 1) {
      const parser = new SseParser();
      expect([...parser.feed(text.slice(0, cut)), ...parser.feed(text.slice(cut))]).toEqual(whole);
    }
  });

  it('keep characters together that were cut in the middle of their bytes', async () => {
    const bytes = new TextEncoder().encode('data: 完了\n\n');
    const body = new ReadableStream<Uint8Array>({
      start(control) {
        for (const byte of bytes) control.enqueue(Uint8Array.of(byte));
        control.close();
      },
    });
    const events = [];
    for await (const event of readEvents(body)) events.push(event.data);
    expect(events).toEqual(['完了']);
  });

  it('give the connection back when the reader leaves early', async () => {
    let isCancelled = false;
    const body = new ReadableStream<Uint8Array>({
      pull: (control) => control.enqueue(new TextEncoder().encode('data: x\n\n')),
      cancel: () => void (isCancelled = true),
    });
    for await (const event of readEvents(body)) if (event.data === 'x') break;
    expect(isCancelled).toBe(true);
  });

  it('that were begun but not ended are not told', async () => {
    const events = [];
    for await (const event of readEvents(stream('data: a\n\nda', 'ta: b\n'))) events.push(event.data);
    expect(events).toEqual(['a']);
  });
});
