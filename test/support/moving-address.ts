import { once } from "node:events";
import { type AddressInfo, type Socket, connect, createServer } from "node:net";

export interface MovingAddress {
  /** The same database, by way of the address. */
  url: string;
  /** New connections lead to another server. Open ones stay where they are. */
  moveTo(url: string): void;
  close(): Promise<void>;
}

/** An address that can be given to another server, as a virtual IP, a DNS name or a pooler is after a failover. */
export async function startMovingAddress(first: string): Promise<MovingAddress> {
  let target = new URL(first);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    client.pipe(upstream).pipe(client);
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one.on("error", () => {});
      one.on("close", () => {
        sockets.delete(one);
        other.destroy();
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(first);
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    moveTo(other) {
      target = new URL(other);
    },
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}
