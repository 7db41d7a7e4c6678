import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv } from "ajv";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { loadAlertSettings } from "../../src/parts/alerts/settings.ts";
import { loadForwardSettings } from "../../src/parts/delivery/forward/settings.ts";
import { openAlertChannels } from "../../src/parts/alerts/run-alerts.ts";
import { loadConfig } from "../../src/app/config/config.ts";
import { settings } from "../../src/app/config/variables.ts";
import { openOwnDestinations } from "../../src/parts/delivery/forward/run-forwarding.ts";
import { wallClock } from "../../src/platform/clock.ts";
import { projectRoot } from "../support/project-root.ts";
import { createDatabaseSql, readCompose, readEnvExample, serverSettings, service } from "./compose-file.ts";

const baseUrl = "https://api.example.com";
const variables = readEnvExample({ SVC_BASE_URL: baseUrl });
const compose = readCompose(variables);
const secretValues: Record<string, string> = {
  postgres_password: "ssssssssssssssss",
  database_password: "pppppppppppppppp",
  database_url: "postgres://tallyhook:pppppppppppppppp@postgres:5432/tallyhook",
  svc_api_key: "svc_test_sk_0123456789",
  svc_webhook_secrets: "whsec_0123456789abcdef",
  tallyhook_encryption_key: "0123456789abcdef".repeat(4),
};
const ours = ["migrate", "receiver", "worker", "dashboard", "cli"];
const theirs = ["postgres", "redis"];
/** What a tag alone is not: bytes that stay the same. */
const pinned = /^[a-z]+:\d+\.\d+(?:\.\d+)?-[a-z-]+@sha256:[0-9a-f]{64}$/;

/** dclint ships the schema of the compose specification as it stood at dclint's release. */
function validateCompose(file: unknown): string[] {
  const dclint = dirname(fileURLToPath(import.meta.resolve("dclint/package.json")));
  const path = join(dclint, "schemas", "compose.schema.json");
  const { $schema: _, ...schema } = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
  const ajv = new Ajv({ allErrors: true, strict: false });
  ajv.validate(schema, file);
  return (ajv.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  );
}

const raw = (): { services: Record<string, Record<string, unknown>> } =>
  parse(readFileSync(join(projectRoot, "docker-compose.yml"), "utf8"), {
    merge: true,
  }) as ReturnType<typeof raw>;

describe("docker-compose.yml", () => {
  test("keeps to the schema of the compose specification", () => {
    expect(validateCompose(raw())).toEqual([]);
    expect(validateCompose(compose)).toEqual([]);
  });

  test("would be refused by that schema with a misspelt key, a wrong type or a wrong condition", () => {
    const spoilt = raw();
    Object.assign(spoilt.services["worker"] ?? {}, { helthcheck: {} });
    Object.assign(spoilt.services["redis"] ?? {}, { stop_grace_period: 20 });
    Object.assign(spoilt.services["receiver"] ?? {}, {
      depends_on: { redis: { condition: "running" } },
    });
    expect(validateCompose(spoilt)).toEqual(
      expect.arrayContaining([
        expect.stringContaining("helthcheck"),
        expect.stringContaining("/services/redis/stop_grace_period must be string"),
        expect.stringContaining("receiver/depends_on"),
      ]),
    );
  });

  test("writes its durations as the specification asks", () => {
    const text = JSON.stringify(compose.services);
    const durations = [...text.matchAll(/"(?:interval|timeout|\w+_period|start_interval)":"([^"]*)"/g)];
    expect(durations.length).toBeGreaterThan(10);
    for (const [, duration] of durations) expect(duration).toMatch(/^(?:\d+(?:ms|s|m|h))+$/);
  });

  test("publishes nothing but the receiver's port, and on loopback the dashboard's", () => {
    const published = Object.entries(compose.services).flatMap(([name, { ports }]) =>
      (ports ?? []).map((port) => `${name} ${port}`),
    );
    expect(published).toEqual(["receiver 3000:3000", "dashboard 127.0.0.1:3002:3002"]);
  });

  test("keeps PostgreSQL and Redis on a network without a way out", () => {
    expect(service(compose, "postgres").networks).toEqual(["data"]);
    expect(service(compose, "redis").networks).toEqual(["data"]);
    expect(compose.networks["data"]).toEqual({ internal: true });
  });

  test("starts receiver and worker only on a migrated database, and the receiver without a working Redis", () => {
    expect(service(compose, "migrate").depends_on).toEqual({
      postgres: { condition: "service_healthy" },
    });
    expect(service(compose, "receiver").depends_on).toEqual({
      migrate: { condition: "service_completed_successfully" },
      redis: { condition: "service_started" },
    });
    expect(service(compose, "worker").depends_on).toEqual({
      migrate: { condition: "service_completed_successfully" },
      redis: { condition: "service_healthy" },
    });
  });

  test("checks the health of all that stay up and brings them back, and runs migrate once", () => {
    for (const name of ["postgres", "redis", "receiver", "worker", "dashboard"]) {
      expect(service(compose, name).healthcheck?.test?.[0], name).toBe("CMD");
      expect(service(compose, name).restart, name).toBe("unless-stopped");
    }
    for (const name of ["migrate", "cli"]) expect(service(compose, name).restart).toBe("no");
  });

  test("runs Redis with noeviction and an append-only file", () => {
    expect(service(compose, "redis").command?.join(" ")).toBe(
      "redis-server --appendonly yes --maxmemory-policy noeviction",
    );
  });

  test("takes every secret from a file that its service is given", () => {
    for (const [name, { environment = {}, secrets = [] }] of Object.entries(compose.services)) {
      for (const [variable, value] of Object.entries(environment)) {
        if (!variable.endsWith("_FILE")) continue;
        expect(secrets, `${name} ${variable}`).toContain(value.replace("/run/secrets/", ""));
      }
      for (const secret of secrets) expect(compose.secrets, name).toHaveProperty(secret);
    }
    expect(Object.keys(compose.secrets).toSorted()).toEqual(Object.keys(secretValues).toSorted());
    for (const [name, { file }] of Object.entries(compose.secrets)) {
      expect(file).toBe(`./secrets/${name}`);
    }
  });

  test("keeps the files of secrets and .env out of git and out of the build", () => {
    const ignored = readFileSync(join(projectRoot, ".gitignore"), "utf8").split("\n");
    expect(ignored).toEqual(expect.arrayContaining(["/secrets/", ".env"]));
    expect(readFileSync(join(projectRoot, ".dockerignore"), "utf8")).toMatch(/^\*$/m);
  });

  test("uses every variable of the first part of .env.example, and no other", () => {
    const text = [
      "docker-compose.yml",
      "docker-compose.alerts.yml",
      "docker-compose.forward.yml",
      "docker-compose.monitoring.yml",
    ]
      .map((file) => readFileSync(join(projectRoot, file), "utf8"))
      .join("\n");
    const used = new Set([...text.matchAll(/\$\{(\w+)|^ +([A-Z_]+):$/gm)].map(([, name, bare]) => name ?? bare ?? ""));
    // Read by Compose itself.
    used.add("COMPOSE_FILE");
    expect([...used].toSorted()).toEqual(Object.keys(variables).toSorted());
  });

  test("falls back to what .env.example shows where .env is silent", () => {
    const text = readFileSync(join(projectRoot, "docker-compose.yml"), "utf8");
    const fallbacks = [...text.matchAll(/\$\{(\w+):-([^}]*)\}/g)];
    expect(fallbacks.length).toBeGreaterThan(10);
    for (const [, name = "", fallback] of fallbacks) expect(variables[name], name).toBe(fallback);
  });

  test.each(ours)("gives %s an environment that the configuration takes as it is", (name) => {
    const readSecret = (path: string): string => secretValues[path.replace("/run/secrets/", "")] ?? "";
    const loaded = loadConfig(service(compose, name).environment ?? {}, readSecret);
    expect(loaded.warnings).toEqual([]);
    expect(loaded.config).toMatchObject({ database: "external", queueBackend: "redis" });
    expect(loaded.secrets.databaseUrl).toBe(secretValues["database_url"]);
  });

  test("passes every setting on to a process, but for those that have no place in a deployment", () => {
    const passed = new Set(
      Object.values(compose.services).flatMap(({ environment = {} }) =>
        Object.keys(environment).map((name) => name.replace(/_FILE$/, "")),
      ),
    );
    const left = Object.keys(settings).filter((name) => !passed.has(name));
    const isSecret = (name: string) => settings[name as keyof typeof settings].isSecret;
    expect(left.filter(isSecret)).toEqual([
      "DATABASE_DIRECT_URL",
      // In comments there: few have a standby.
      "REPORTS_DATABASE_URL",
      // Set by hand, for as long as secrets are encrypted with them.
      "TALLYHOOK_PREVIOUS_ENCRYPTION_KEYS",
      // In comments there, as far as it is not for a proxy of one's own.
      "DASHBOARD_OIDC_CLIENT_SECRET",
      "DASHBOARD_PROXY_SECRET",
      // docker-compose.monitoring.yml
      "METRICS_TOKEN",
      // For who has a collector of traces (docs/tracing.md).
      "OTEL_EXPORTER_OTLP_HEADERS",
    ]);
    const [, outside = ""] = readFileSync(join(projectRoot, ".env.example"), "utf8").split("\n# ====");
    for (const name of left.filter((each) => !isSecret(each))) {
      expect(outside).toContain(`\n#${name}=`);
    }
  });

  test("lets no process of ours take the machine's memory, and leaves room beside its heap", () => {
    for (const name of ours) {
      const { mem_limit: limit, command = [] } = service(compose, name);
      expect(limit, name).toBe("1g");
      const heap = command.map((word) => /^--max-old-space-size=(\d+)$/.exec(word)?.[1]).find(Boolean);
      expect(Number(heap ?? 0), name).toBeLessThanOrEqual(512);
    }
  });

  test("has a container for commands by hand, which does not start by itself and gets what any of them needs", () => {
    const { profiles, entrypoint, secrets } = service(compose, "cli");
    expect(profiles).toEqual(["cli"]);
    expect(entrypoint).toEqual(["node", "src/bin/tallyhook.js"]);
    expect(secrets?.toSorted()).toEqual(
      Object.keys(secretValues)
        .filter((name) => !["postgres_password", "database_password"].includes(name))
        .toSorted(),
    );
  });

  test("runs no container as root, and none with a capability or a way to gain one", () => {
    const dockerfile = readFileSync(join(projectRoot, "Dockerfile"), "utf8");
    for (const [name, each] of Object.entries(compose.services)) {
      const imageUser = each.image.startsWith("tallyhook:") ? /^USER (\S+)$/m.exec(dockerfile)?.[1] : undefined;
      const user = each.user ?? imageUser ?? "root";
      expect(user, name).toBe({ postgres: "postgres", redis: "redis" }[name] ?? "node");
      expect(each.cap_drop, name).toEqual(["ALL"]);
      expect(each.cap_add, name).toBeUndefined();
      expect(each.security_opt, name).toEqual(["no-new-privileges:true"]);
    }
  });

  test("limits the memory and the processes of every container", () => {
    const limits = Object.entries(compose.services).map(([name, each]) => [name, each.mem_limit, each.pids_limit]);
    expect(limits).toEqual([["postgres", "2g", 512], ["redis", "1g", 128], ...ours.map((name) => [name, "1g", 256])]);
    // Part of its 2 GiB.
    expect(service(compose, "postgres").shm_size).toBe("256m");
  });

  test("makes every container read-only but the one that Compose copies a config into", () => {
    for (const [name, { read_only: readOnly = false, configs = [], tmpfs }] of Object.entries(compose.services)) {
      const copied = configs.filter(({ source }) => compose.configs?.[source]?.content !== undefined);
      expect(readOnly, name).toBe(copied.length === 0);
      expect(tmpfs, name).toContain("/tmp");
    }
    expect(service(compose, "postgres").tmpfs).toContain("/var/run/postgresql");
  });

  test("gives PostgreSQL a quarter of its memory for pages, rare checkpoints and a compressed log", () => {
    expect(serverSettings(compose)).toEqual({
      shared_buffers: "512MB",
      max_wal_size: "4GB",
      checkpoint_timeout: "15min",
      wal_compression: "lz4",
    });
    expect(service(compose, "postgres").mem_limit).toBe("2g");
  });

  test("gives PostgreSQL what docs/operations.md says that Compose does", () => {
    const operations = readFileSync(join(projectRoot, "docs/operations.md"), "utf8");
    const [, section = ""] = operations.split("\n## PostgreSQL's settings\n");
    const rows = section.matchAll(/^\| `(\w+)` +\| [^|]+\| ([^|]+?) +\|/gm);
    const said = [...rows].map(([, name = "", value = ""]) => [name, value.replace(" ", "")]);
    expect(said).toHaveLength(4);
    expect(Object.fromEntries(said)).toEqual(serverSettings(compose));
  });

  test("keeps what PostgreSQL and Redis have to keep on volumes", () => {
    expect(service(compose, "postgres").volumes).toEqual(["postgres:/var/lib/postgresql"]);
    expect(service(compose, "redis").volumes).toEqual(["redis:/data"]);
  });

  test("names the images of others by version and digest", () => {
    for (const name of theirs) expect(service(compose, name).image, name).toMatch(pinned);
  });

  test("logs in as a role that is not the server's superuser", () => {
    const { environment, configs } = service(compose, "postgres");
    // Without POSTGRES_USER the image's superuser is postgres.
    expect(environment).toEqual({ POSTGRES_PASSWORD_FILE: "/run/secrets/postgres_password" });
    expect(configs).toEqual([
      {
        source: "create_database",
        target: "/docker-entrypoint-initdb.d/create-database.sql",
      },
    ]);
    const { username, password } = new URL(secretValues["database_url"] ?? "");
    expect(createDatabaseSql(compose)).toContain(`create role ${username} login nosuperuser`);
    expect(password).toBe(secretValues["database_password"]);
    for (const name of ours) {
      expect(service(compose, name).secrets, name).not.toContain("postgres_password");
      expect(service(compose, name).secrets, name).not.toContain("database_password");
    }
  });

  test("gives each process the secrets of its own work alone", () => {
    expect(service(compose, "migrate").secrets).toEqual(["database_url"]);
    expect(service(compose, "receiver").secrets).not.toContain("svc_api_key");
    for (const name of ["worker", "dashboard"]) {
      expect(service(compose, name).secrets).not.toContain("svc_webhook_secrets");
    }
    expect(service(compose, "worker").secrets).not.toContain("tallyhook_encryption_key");
  });

  test("says in words what is missing when .env is not filled in", () => {
    expect(() => readCompose({})).toThrow("Set SVC_BASE_URL in .env");
  });
});

describe("docker-compose.alerts.yml", () => {
  const alerts = readCompose(variables, "docker-compose.alerts.yml");
  const worker = alerts.services["worker"];

  test("keeps to the schema of the compose specification, and gives something to the worker alone", () => {
    expect(validateCompose(alerts)).toEqual([]);
    expect(Object.keys(alerts.services)).toEqual(["worker"]);
    expect(worker?.secrets?.toSorted()).toEqual(Object.keys(alerts.secrets).toSorted());
    for (const [name, { file }] of Object.entries(alerts.secrets)) {
      expect(file).toBe(`./secrets/${name}`);
    }
  });

  test("gives the worker what the channels of the example need", () => {
    const values: Record<string, string> = {
      ...secretValues,
      alert_slack_url: "https://hooks.slack.com/services/T0/B0/x",
      alert_pagerduty_key: "0123456789abcdef0123456789abcdef",
      alert_crm_url: "https://crm.example.com/hooks",
      alert_crm_secret: "0123456789abcdef",
    };
    const environment = {
      ...service(compose, "worker").environment,
      ...worker?.environment,
    };
    const { config, secrets } = loadConfig(environment, (path) => values[path.replace("/run/secrets/", "")] ?? "");
    expect(config.alerts.settingsFile).toBe("/etc/tallyhook/alerts.jsonc");
    const settings = loadAlertSettings(join(projectRoot, "alerts.example.jsonc"));
    const channels = openAlertChannels({ config, live: null, secrets, wallClock }, settings);
    expect([...channels.keys()]).toEqual(Object.keys(settings.channels));
  });
});

describe("docker-compose.forward.yml", () => {
  const forward = readCompose(variables, "docker-compose.forward.yml");
  const worker = forward.services["worker"];

  test("gives the worker alone what the destinations of the example need", () => {
    expect(validateCompose(forward)).toEqual([]);
    expect(Object.keys(forward.services)).toEqual(["worker"]);
    expect(worker?.secrets).toEqual(Object.keys(forward.secrets));
    const values: Record<string, string> = {
      ...secretValues,
      forward_crm_secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
      forward_warehouse_secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    };
    const { config, secrets } = loadConfig(
      { ...service(compose, "worker").environment, ...worker?.environment },
      (path) => values[path.replace("/run/secrets/", "")] ?? "",
    );
    expect(config.forward.settingsFile).toBe("/etc/tallyhook/forward.jsonc");
    const settings = loadForwardSettings(join(projectRoot, "forward.example.jsonc"));
    const opened = openOwnDestinations({ secrets, wallClock }, settings);
    expect(opened.map(({ name }) => name)).toEqual(["forward:crm", "forward:warehouse"]);
  });
});

describe("docker-compose.monitoring.yml", () => {
  const monitoring = readCompose(variables, "docker-compose.monitoring.yml");
  const serving = ["receiver", "worker", "dashboard"];
  const added = ["prometheus", "grafana"];

  test("keeps to the schema of the compose specification, and adds two services that start by their profile alone", () => {
    expect(validateCompose(monitoring)).toEqual([]);
    expect(Object.keys(monitoring.services)).toEqual([...serving, ...added]);
    for (const name of added) expect(service(monitoring, name).profiles).toEqual(["monitoring"]);
    for (const [name, { file }] of Object.entries(monitoring.secrets)) {
      expect(file).toBe(`./secrets/${name}`);
    }
  });

  test("asks nothing of a deployment without it: docker-compose.yml names neither its secrets nor its network", () => {
    for (const name of Object.keys(monitoring.secrets)) {
      expect(compose.secrets).not.toHaveProperty(name);
    }
    for (const name of serving) {
      expect(service(compose, name).environment?.["ADMIN_HOST"]).toBe("127.0.0.1");
    }
  });

  test.each(serving)("has %s serve its metrics on a network without a way out, behind a token", (name) => {
    const { environment, secrets, networks } = service(monitoring, name);
    expect(secrets).toEqual(["metrics_token"]);
    expect(networks).toEqual(["metrics"]);
    expect(monitoring.networks["metrics"]).toEqual({ internal: true });
    const loaded = loadConfig(
      { ...service(compose, name).environment, ...environment },
      (path) =>
        ({ ...secretValues, metrics_token: "0123456789abcdef".repeat(4) })[path.replace("/run/secrets/", "")] ?? "",
    );
    expect(loaded.warnings).toEqual([]);
    expect(loaded.config.admin).toEqual({ host: "0.0.0.0", port: 3001 });
  });

  test("keeps Prometheus and Grafana away from PostgreSQL and Redis, and publishes both on loopback", () => {
    const of = (name: string) => service(monitoring, name);
    expect(of("prometheus").networks).toEqual(["metrics", "monitoring"]);
    expect(of("grafana").networks).toEqual(["monitoring"]);
    expect([of("prometheus").secrets, of("grafana").secrets]).toEqual([["metrics_token"], ["grafana_password"]]);
    expect(added.flatMap((name) => of(name).ports)).toEqual(["127.0.0.1:9090:9090", "127.0.0.1:3006:3000"]);
  });

  test.each(added)("runs %s with few rights, limits and a pinned image, and brings it back", (name) => {
    const each = service(monitoring, name);
    expect(each.image).toMatch(/^[a-z]+\/[a-z]+:v?\d+\.\d+\.\d+@sha256:[0-9a-f]{64}$/);
    expect(each).toMatchObject({
      user: expect.stringMatching(/^[1-9]\d+$/) as string,
      read_only: true,
      tmpfs: ["/tmp"],
      cap_drop: ["ALL"],
      security_opt: ["no-new-privileges:true"],
      restart: "unless-stopped",
      mem_limit: "512m",
      pids_limit: 128,
    });
    expect(each.healthcheck?.test?.[0]).toBe("CMD");
  });

  test("mounts files that are there, and nothing that can be written but its volumes", () => {
    const mounts = added.flatMap((name) => service(monitoring, name).volumes ?? []);
    const ofHost = mounts.filter((mount) => mount.startsWith("."));
    expect(ofHost.length).toBeGreaterThan(2);
    for (const mount of ofHost) {
      const [from = "", , mode] = mount.split(":");
      expect(existsSync(join(projectRoot, from)), mount).toBe(true);
      expect(mode, mount).toBe("ro");
    }
    expect(mounts.filter((mount) => !mount.startsWith("."))).toEqual([
      "prometheus:/prometheus",
      "grafana:/var/lib/grafana",
    ]);
  });

  test("has Prometheus read the ports and the services that the compose files name", () => {
    const { scrape_configs: jobs } = parse(
      readFileSync(join(projectRoot, "deploy/prometheus/prometheus.compose.yml"), "utf8"),
    ) as { scrape_configs: { dns_sd_configs: { names: string[]; port: number }[] }[] };
    const found = jobs.flatMap((job) => job.dns_sd_configs);
    expect(found.flatMap(({ names }) => names)).toEqual(serving);
    for (const name of serving) {
      const { ADMIN_PORT } = service(compose, name).environment ?? {};
      expect(found.map(({ port }) => String(port))).toEqual([ADMIN_PORT]);
    }
  });
});

describe("Dockerfile", () => {
  const dockerfile = readFileSync(join(projectRoot, "Dockerfile"), "utf8");
  const lastStage = dockerfile.slice(dockerfile.lastIndexOf("\nFROM "));

  test("runs the receiver, as the compose file does, and not as root", () => {
    expect(lastStage).toContain(`CMD ${JSON.stringify(service(compose, "receiver").command)}`.replaceAll(",", ", "));
    expect(lastStage).toMatch(/^USER node$/m);
  });

  test("begins both stages with the same image, named by version and digest", () => {
    const [build, run, ...more] = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image);
    expect(build).toMatch(pinned);
    expect([run, more]).toEqual([build, []]);
  });

  test("holds the license that package.json names", () => {
    const { license } = JSON.parse(readFileSync(join(projectRoot, "package.json"), "utf8")) as {
      license: string;
    };
    const [title] = readFileSync(join(projectRoot, "LICENSE"), "utf8").split("\n");
    expect(title).toBe(`${license} License`);
    expect(lastStage).toMatch(/^COPY --from=build \S+LICENSE /m);
  });

  test("builds from files that enter the build", () => {
    const admitted = new Set(
      readFileSync(join(projectRoot, ".dockerignore"), "utf8")
        .split("\n")
        .flatMap((line) => (line.startsWith("!") ? [line.slice(1)] : [])),
    );
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, files]) =>
      (files ?? "").split(" "),
    );
    expect(copied.length).toBeGreaterThan(5);
    expect([...admitted].toSorted()).toEqual(copied.toSorted());
  });
});
