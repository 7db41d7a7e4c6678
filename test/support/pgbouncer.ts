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
  /** Runs a command of its console (PAUSE, RESUME, KILL, RECONNECT, …). */
  command(text: string): Promise<void>;
  /** Replaces settings and has them read again. */
  change(settings: PgBouncerSettings): Promise<void>;
  stop(): Promise<void>;
}

export type PgBouncerSettings = Readonly<Record<string, string | number>>;

/** Like most deployed ones: it ignores settings from connections. */
const usual = {
  listen_addr: "127.0.0.1",
  unix_socket_dir: "",
  auth_type: "any",
  default_pool_size: 60,
  max_client_conn: 300,
  ignore_startup_parameters: "options,extra_float_digits",
} as const;

/** A PgBouncer in front of a test database, or of the whole server when other databases are asked for through it. */
export async function startPgBouncer(
  target: string,
  mode: "session" | "transaction" | "statement",
  settings: PgBouncerSettings = {},
): Promise<PgBouncer> {
  const { hostname, port, username, password, pathname } = new URL(target);
  const own = await freePort();
  const directory = await mkdtemp(join(tmpdir(), "pgbouncer-"));
  await chmod(directory, 0o755);
  const file = join(directory, "pgbouncer.ini");
  let all: PgBouncerSettings = {
    ...usual,
    listen_port: own,
    admin_users: username,
    pool_mode: mode,
    ...settings,
  };
  const write = (): Promise<void> =>
    writeFile(
      file,
      `[databases]
* = host=${hostname} port=${port} user=${username} password=${password}
[pgbouncer]
${Object.entries(all)
  .map(([name, value]) => `${name} = ${value}\n`)
  .join("")}`,
      { mode: 0o644 },
    );
  await write();
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
  const child = spawn("pgbouncer", [...user, file], { stdio: "ignore" });
  const ended = once(child, "exit");
  // One that a test forgot would outlive the run.
  const killWithTests = (): void => void child.kill("SIGQUIT");
  process.once("exit", killWithTests);
  const base = `postgres://${username}@127.0.0.1:${own}`;
  const url = `${base}${pathname}`;
  const command = (text: string): Promise<void> =>
    withServer(`${base}/pgbouncer`, async (client) => void (await client.query(text)));
  await eventually("PgBouncer answers", () =>
    withServer(url, (client) => client.query("select 1")).then(
      () => true,
      () => false,
    ),
  );
  return {
    url,
    command,
    async change(changed) {
      all = { ...all, ...changed };
      await write();
      await command("reload");
    },
    async stop() {
      process.removeListener("exit", killWithTests);
      child.kill("SIGQUIT");
      await ended;
    },
  };
}
