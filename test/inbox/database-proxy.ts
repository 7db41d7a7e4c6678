import { once } from "node:events";
import { type AddressInfo, type Server, type Socket, connect, createServer } from "node:net";

export interface DatabaseProxy {
  /** The same database, through the proxy. */
  url: string;
  /** From now on nothing passes any more, in either direction, on old and new connections. */
  freeze(): void;
  thaw(): void;
  /** Cuts every connection and refuses new ones. */
  goDown(): Promise<void>;
  comeBack(): Promise<void>;
  close(): Promise<void>;
}

/** A proxy in front of a database, for a network or a server that hangs or goes away. */
export async function startDatabaseProxy(databaseUrl: string): Promise<DatabaseProxy> {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  let isFrozen = false;
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    if (isFrozen) socket.pause();
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  };
  const start = async (port: number): Promise<Server> => {
    const server = createServer((client) => {
      const upstream = connect(Number(target.port), target.hostname);
      client.pipe(upstream).pipe(client);
      client.on("close", () => upstream.destroy());
      upstream.on("close", () => client.destroy());
      keep(client);
      keep(upstream);
    });
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return server;
  };
  const stop = async (server: Server): Promise<void> => {
    const closed = once(server, "close");
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  let server = await start(0);
  const { port } = server.address() as AddressInfo;
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${port}`;
  return {
    url: url.href,
    freeze() {
      isFrozen = true;
      for (const socket of sockets) socket.pause();
    },
    thaw() {
      isFrozen = false;
      for (const socket of sockets) socket.resume();
    },
    goDown: () => stop(server),
    async comeBack() {
      server = await start(port);
    },
    async close() {
      if (server.listening) await stop(server);
    },
  };
}
