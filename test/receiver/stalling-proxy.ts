import { once } from "node:events";
import { type AddressInfo, type Socket, connect, createServer } from "node:net";

export interface StallingProxy {
  /** The same database, by way of the proxy. */
  url: string;
  /** From now on nothing passes, and nobody is told: as when a cable is pulled. */
  stall(): void;
  /** Open connections fall silent for good, and new ones pass: a failover that nobody was told of. */
  strand(): void;
  /** From now on every connection is closed at once. */
  cut(): void;
  /** What waited passes, in both directions, and connections are taken again. */
  resume(): void;
  close(): Promise<void>;
}

/** Stands between a client and its server, and can fall silent. */
export async function startStallingProxy(target: string): Promise<StallingProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const stranded = new Set<Socket>();
  let isStalled = false;
  let isCut = false;
  const server = createServer((client) => {
    if (isCut) {
      client.destroy();
      return;
    }
    const upstream = connect(Number(port), hostname);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      if (isStalled) from.pause();
      from.on("data", (chunk: Buffer) => void to.write(chunk));
      from.on("error", () => {});
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      if (isStalled) from.pause();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(target);
  url.hostname = "127.0.0.1";
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    stall() {
      isStalled = true;
      for (const socket of sockets) socket.pause();
    },
    strand() {
      for (const socket of sockets) {
        socket.pause();
        sockets.delete(socket);
        stranded.add(socket);
      }
    },
    cut() {
      isCut = true;
      for (const socket of sockets) socket.destroy();
    },
    resume() {
      isStalled = false;
      isCut = false;
      for (const socket of sockets) socket.resume();
    },
    async close() {
      for (const socket of [...sockets, ...stranded]) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
