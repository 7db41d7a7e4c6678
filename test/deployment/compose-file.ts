import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { projectRoot } from "../support/project-root.ts";

export interface HealthCheck {
  test?: string[];
  disable?: boolean;
}

export interface Service {
  image: string;
  command?: string[];
  entrypoint?: string[];
  profiles?: string[];
  mem_limit?: string;
  pids_limit?: number;
  shm_size?: string;
  user?: string;
  read_only?: boolean;
  tmpfs?: string[];
  cap_drop?: string[];
  cap_add?: string[];
  security_opt?: string[];
  configs?: { source: string; target: string }[];
  volumes?: string[];
  environment?: Record<string, string>;
  secrets?: string[];
  ports?: string[];
  networks?: string[];
  restart?: string;
  healthcheck?: HealthCheck;
  stop_grace_period?: string;
  depends_on?: Record<string, { condition: string }>;
}

export interface ComposeFile {
  services: Record<string, Service>;
  secrets: Record<string, { file: string }>;
  configs?: Record<string, { file?: string; content?: string }>;
  networks: Record<string, { internal?: boolean }>;
}

/** A compose file as `docker compose` reads it; `variables` are those of .env and of the shell. */
export function readCompose(variables: Readonly<Record<string, string>>, file = "docker-compose.yml"): ComposeFile {
  const text = readFileSync(join(projectRoot, file), "utf8");
  const compose = interpolate(parse(text, { merge: true }), variables) as ComposeFile;
  for (const each of Object.values(compose.services)) passThrough(each, variables);
  return compose;
}

/** A variable without a value has that of .env or of the shell, and is not set where there is none. */
function passThrough(each: Service, variables: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries<string | null>(each.environment ?? {})) {
    if (value !== null) continue;
    const given = variables[name];
    if (given === undefined) delete each.environment?.[name];
    else Object.assign(each.environment ?? {}, { [name]: given });
  }
}

/** The forms of the compose specification that the file uses: `${A}`, `${A:-default}`, `${A:?message}`. */
function interpolate(node: unknown, variables: Readonly<Record<string, string>>): unknown {
  if (typeof node === "string") {
    return node.replace(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, (_, name: string, sign?: string, text?: string) => {
      const value = variables[name] ?? "";
      if (value !== "" || sign === undefined) return value;
      if (sign === "-") return text ?? "";
      throw new Error(`${name}: ${text}`);
    });
  }
  if (Array.isArray(node)) return node.map((item) => interpolate(item, variables));
  if (typeof node !== "object" || node === null) return node;
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, interpolate(value, variables)]));
}

/** The service of that name; a test that asks for one that is not there has failed. */
export function service(compose: ComposeFile, name: string): Service {
  const found = compose.services[name];
  if (found === undefined) throw new Error(`docker-compose.yml has no service ${name}`);
  return found;
}

/** The settings on the command line of the postgres service, `-c name=value` each. */
export function serverSettings(compose: ComposeFile): Record<string, string> {
  const [program, ...options] = service(compose, "postgres").command ?? [];
  if (program !== "postgres") throw new Error("the postgres service runs another program");
  const settings: Record<string, string> = {};
  for (let n = 0; n < options.length; n += 2) {
    const [, name, value] = /^(\w+)=(.+)$/.exec(options[n + 1] ?? "") ?? [];
    if (options[n] !== "-c" || name === undefined || value === undefined)
      throw new Error(`${options[n]} ${options[n + 1]} is no setting`);
    settings[name] = value;
  }
  return settings;
}

/** What psql runs in the empty server of the postgres service. */
export function createDatabaseSql(compose: ComposeFile): string {
  const content = compose.configs?.["create_database"]?.content;
  if (content === undefined) throw new Error("docker-compose.yml has no config create_database");
  return content;
}

/** `20s`, `1m`, `1m30s` in milliseconds. */
export function durationMs(text: string): number {
  const unitMs: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
  return [...text.matchAll(/(\d+)(ms|s|m|h)/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * (unitMs[unit ?? ""] ?? Number.NaN),
    0,
  );
}

/** What a filled-in .env holds for Compose: the lines of the first part of .env.example, commented out or not. */
export function readEnvExample(given: Readonly<Record<string, string>>): Record<string, string> {
  const [text = ""] = readFileSync(join(projectRoot, ".env.example"), "utf8").split("\n# ====");
  const lines = [...text.matchAll(/^#?([A-Z_]+)=(.*)$/gm)];
  return Object.fromEntries(lines.map(([, name = "", value = ""]) => [name, given[name] ?? value] as const));
}
