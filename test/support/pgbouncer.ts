import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "./eventually.ts";
import { freePort } from "./free-port.ts";
import { withServer } from "./server-commands.ts";

export const pgbouncerInstalled = spawnSync("pgbouncer", ["--version"]).status === 0;

export interface PgBouncer {
  /** The same database, by way of the pooler. */
  url: string;
  stop(): Promise<void>;
}

/** A PgBouncer in front of a test database. It leaves out what connections bring, as most that are deployed do. */
export async function startPgBouncer(
  target: string,
  mode: "session" | "transaction",
): Promise<PgBouncer> {
  const { hostname, port, username, password, pathname } = new URL(target);
  const own = await freePort();
  const directory = await mkdtemp(join(tmpdir(), "pgbouncer-"));
  await chmod(directory, 0o755);
  const settings = join(directory, "pgbouncer.ini");
  await writeFile(
    settings,
    `[databases]
* = host=${hostname} port=${port} user=${username} password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${own}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
default_pool_size = 60
max_client_conn = 300
ignore_startup_parameters = options,extra_float_digits
`,
    { mode: 0o644 },
  );
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
  const child = spawn("pgbouncer", [...user, settings], { stdio: "ignore" });
  const ended = once(child, "exit");
  const url = `postgres://${username}@127.0.0.1:${own}${pathname}`;
  await eventually("PgBouncer answers", () =>
    withServer(url, (client) => client.query("select 1")).then(
      () => true,
      () => false,
    ),
  );
  return {
    url,
    async stop() {
      child.kill("SIGQUIT");
      await ended;
    },
  };
}
