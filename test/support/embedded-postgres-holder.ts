/**
 * A process that uses the embedded server of a data directory, for tests that signal and kill it:
 * `node --import tsx embedded-postgres-holder.ts DATA_DIR`. Prints one line of JSON when it has the server or
 * could not get it; gives the server up when a line comes on standard input. Ctrl-C does not end it, as it does
 * not end an application that still drains.
 */
import { once } from "node:events";
import { startEmbeddedPostgres } from "../../src/platform/embedded/embedded-postgres.ts";
import { createLog } from "../../src/platform/log.ts";

process.on("SIGINT", () => {});
const dataDir = process.argv[2] ?? "";
try {
  const log = createLog({ level: "silent", name: "holder" });
  const server = await startEmbeddedPostgres({ dataDir, log });
  const { url, attached, pid, port } = server;
  console.log(JSON.stringify({ url, attached, pid, port }));
  await once(process.stdin, "data");
  await server.stop();
  process.exit(0);
} catch (error) {
  const { name, message, cause } = error as Error;
  console.log(JSON.stringify({ error: { name, message, cause: String(cause) } }));
  process.exit(1);
}
