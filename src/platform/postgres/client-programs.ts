import { spawn } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { ConfigurationError } from "../errors.ts";
import { exists } from "../files.ts";

/** PostgreSQL's own programs that a backup needs, of one version. */
export interface ClientPrograms {
  pgDump: string;
  pgRestore: string;
  /** Such as `15.18`. */
  version: string;
}

/** Where packages install a version each: Debian and Ubuntu, Red Hat, Homebrew on both kinds of Mac, Alpine. */
const versionFolders: readonly (readonly [folder: string, name: RegExp, inside: string])[] = [
  ["/usr/lib/postgresql", /^(\d+)$/, "bin"],
  ["/usr", /^pgsql-(\d+)$/, "bin"],
  ["/opt/homebrew/opt", /^(?:postgresql|libpq)(?:@\d+)?$/, "bin"],
  ["/usr/local/opt", /^(?:postgresql|libpq)(?:@\d+)?$/, "bin"],
  ["/usr/libexec", /^postgresql(\d+)$/, ""],
];

/**
 * Finds pg_dump and pg_restore for a server: of its own version where they are installed, otherwise of the next one. An
 * older pg_dump refuses a newer server. `folder`: searches only there. Throws `ConfigurationError` that names the
 * package to install.
 */
export async function findClientPrograms(serverVersion: number, folder?: string): Promise<ClientPrograms> {
  const wanted = majorOf(serverVersion);
  const found: (ClientPrograms & { major: number })[] = [];
  for (const bin of folder === undefined ? await likelyFolders() : [folder]) {
    const programs = await programsIn(bin);
    if (programs !== null) found.push(programs);
  }
  const [best] = found.filter(({ major }) => major >= wanted).sort((a, b) => a.major - b.major);
  if (best !== undefined) return best;
  const there =
    found.length === 0
      ? "none was found"
      : `found ${found.map(({ version, pgDump }) => `${version} (${pgDump})`).join(", ")}`;
  throw new ConfigurationError(
    `The server is PostgreSQL ${wanted}, and its backup needs pg_dump and pg_restore of version ${wanted} or later: ` +
      `${there}. Install the package postgresql-client-${wanted} (Debian, Ubuntu; apt.postgresql.org has every version), ` +
      `postgresql${wanted} (Red Hat) or libpq (Homebrew), or name the folder that has them: --pg-bin FOLDER.`,
  );
}

const majorOf = (serverVersion: number): number => Math.floor(serverVersion / 10_000);

async function likelyFolders(): Promise<string[]> {
  const folders: string[] = [];
  for (const [folder, name, inside] of versionFolders) {
    const names = await readdir(folder).catch(() => []);
    folders.push(...names.filter((each) => name.test(each)).map((each) => join(folder, each, inside)));
  }
  // Last: Debian puts a program there that chooses a version by itself.
  const onPath = await run("/bin/sh", ["-c", "command -v pg_dump"]).catch(() => null);
  if (onPath !== null && onPath.code === 0) {
    folders.push(onPath.out.trim().replace(/\/pg_dump$/, ""));
  }
  return folders;
}

async function programsIn(bin: string): Promise<(ClientPrograms & { major: number }) | null> {
  const [pgDump, pgRestore] = [join(bin, "pg_dump"), join(bin, "pg_restore")];
  if (!(await exists(pgDump)) || !(await exists(pgRestore))) return null;
  const asked = await run(pgDump, ["--version"]).catch(() => null);
  const version = /\(PostgreSQL\) (\d+\S*)/.exec(asked?.out ?? "")?.[1];
  return version === undefined ? null : { pgDump, pgRestore, version, major: Number.parseInt(version, 10) };
}

/** Names of libpq's environment by the parameters of a URL that have one. */
const environmentOfParameter: Readonly<Record<string, string>> = {
  host: "PGHOST",
  port: "PGPORT",
  sslmode: "PGSSLMODE",
  sslrootcert: "PGSSLROOTCERT",
  sslcert: "PGSSLCERT",
  sslkey: "PGSSLKEY",
  options: "PGOPTIONS",
};

/**
 * The environment by which libpq's programs reach the database of a URL. The password is in it and never among a
 * program's arguments, which every user of the machine can read.
 */
export function libpqEnvironment(databaseUrl: string): Record<string, string> {
  const { hostname, port, username, password, pathname, searchParams } = new URL(databaseUrl);
  const given: Record<string, string> = {
    PGHOST: hostname.replace(/^\[(.*)\]$/, "$1"),
    PGPORT: port,
    PGUSER: decodeURIComponent(username),
    PGPASSWORD: decodeURIComponent(password),
    // As the driver decodes it: `%3D`, `%2F` and the like are letters of the name.
    PGDATABASE: decodeURI(pathname.slice(1)),
  };
  for (const [parameter, name] of Object.entries(environmentOfParameter)) {
    const value = searchParams.get(parameter);
    // The driver's word for a connection that is encrypted and not verified.
    if (value !== null) given[name] = value === "no-verify" ? "require" : value;
  }
  const known = Object.entries(given).filter(([, value]) => value !== "");
  return { ...Object.fromEntries(known), PGAPPNAME: "tallyhook backup", LC_ALL: "C" };
}

/**
 * A connection string of libpq. An argument `--dbname` with a bare name would be read as one where the name has an `=`
 * in it or begins as a URL does; the environment's `PGDATABASE` never is.
 */
export const connectionString = (parameters: Readonly<Record<string, string>>): string =>
  Object.entries(parameters)
    .map(([name, value]) => `${name}='${value.replaceAll(/[\\']/g, String.raw`\$&`)}'`)
    .join(" ");

/** A program's output and exit. */
export interface ProgramEnd {
  code: number | null;
  out: string;
  /** The end of its standard error. */
  err: string;
}

const mostOutput = 64 * 1024 * 1024;
const mostErrors = 4_000;

/**
 * Runs a program to its end. `environment` is all that it gets; without one, it gets that of this process. An aborted
 * signal ends it. Rejects where it cannot be started.
 */
export function run(
  program: string,
  args: readonly string[],
  { environment, signal }: { environment?: Readonly<Record<string, string>>; signal?: AbortSignal } = {},
): Promise<ProgramEnd> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      ...(environment === undefined ? {} : { env: environment }),
      stdio: ["ignore", "pipe", "pipe"],
    });
    let [out, err] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      if (out.length < mostOutput) out += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      err = (err + text).slice(-mostErrors);
    });
    const end = (): void => void child.kill("SIGTERM");
    signal?.addEventListener("abort", end);
    if (signal?.aborted === true) end();
    child.once("error", reject);
    child.once("close", (code) => {
      signal?.removeEventListener("abort", end);
      resolve({ code, out, err });
    });
  });
}
