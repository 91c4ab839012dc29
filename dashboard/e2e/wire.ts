// A way to the server that can be cut: every byte goes through, in both directions, until it is.
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface Wire {
  url: string;
  /** Lets connections fail, as when the server is gone. */
  cut(isCut: boolean): void;
  close(): Promise<void>;
}

export async function wireTo(url: string): Promise<Wire> {
  const { hostname, port } = new URL(url);
  const open = new Set<Socket>();
  let isCut = false;
  const server = createServer((near) => {
    if (isCut) return void near.destroy();
    const far = connect(Number(port), hostname);
    for (const [one, other] of [[near, far], [far, near]] as const) {
      open.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        open.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const hangUp = () => open.forEach((socket) => socket.destroy());
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut(cut) {
      isCut = cut;
      if (cut) hangUp();
    },
    async close() {
      hangUp();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
