/**
 * A process that uses the embedded server of a data directory, for tests that signal and kill it:
 * `node embedded-postgres-holder.js SRC DATA_DIR`, where SRC is the compiled `src/`. Prints one line of JSON when it has
 * the server or could not get it; gives the server up when a line comes on standard input. Ctrl-C does not end it, as it
 * does not end an application that still drains.
 */
import { once } from "node:events";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [src = "", dataDir = ""] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(join(src, path)).href);

process.on("SIGINT", () => {});
try {
  const { startEmbeddedPostgres } = await load("platform/embedded/embedded-postgres.js");
  const { createLog } = await load("platform/log.js");
  const log = createLog({ level: "silent", name: "holder" });
  const server = await startEmbeddedPostgres({ dataDir, log });
  const { url, attached, pid, port } = server;
  console.log(JSON.stringify({ url, attached, pid, port }));
  await once(process.stdin, "data");
  await server.stop();
  process.exit(0);
} catch (error) {
  const { name, message, cause } = error;
  console.log(JSON.stringify({ error: { name, message, cause: String(cause) } }));
  process.exit(1);
}
