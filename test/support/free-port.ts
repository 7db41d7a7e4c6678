import { once } from "node:events";
import { createServer } from "node:net";

/** A free port of 127.0.0.1, for a program that cannot report which one it took. */
export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port was assigned");
  return address.port;
}
