import { execFile, spawnSync } from "node:child_process";
import { cpSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { loadConfig } from "../../src/app/config/config.ts";
import { settings } from "../../src/app/config/variables.ts";
import { projectRoot } from "../support/project-root.ts";
import { systemdAnalyzes } from "../support/systemd-analyze.ts";
import { durationMs, readCompose, service } from "./compose-file.ts";
import { readUnit, unitFolder } from "./systemd-unit.ts";

const baseUrl = "https://api.example.com";
const compose = readCompose({ SVC_BASE_URL: baseUrl });
const longRunning = ["receiver", "worker", "dashboard"];
const units = [...longRunning, "backup"].map((name) => readUnit(`tallyhook-${name}`));
const secretValues: Record<string, string> = {
  database_url: "postgres://tallyhook:pppppppppppppppp@127.0.0.1:9/tallyhook",
  svc_api_key: "svc_test_sk_0123456789",
  svc_webhook_secrets: "whsec_0123456789abcdef",
  tallyhook_encryption_key: "0123456789abcdef".repeat(4),
};

/** Secrets that a drop-in brings to those who use them (docs/deployment.md). */
const dropIn: Readonly<Record<string, Record<string, string>>> = {
  "tallyhook-dashboard": {
    DASHBOARD_OIDC_CLIENT_SECRET: "ssssssss",
    DASHBOARD_PROXY_SECRET: "ssssssssssssssss",
  },
};

/** A file of settings with all that .env.example shows, but for what Compose alone reads; of secrets, the mail server. */
function everySetting(): Record<string, string> {
  const text = readFileSync(join(projectRoot, ".env.example"), "utf8");
  const lines = [...text.matchAll(/^#?([A-Z_]+)=(.*)$/gm)];
  const plain = lines.filter(([, name = ""]) => name in settings && !settings[name as keyof typeof settings].isSecret);
  return {
    ...Object.fromEntries(plain.map(([, name = "", value]) => [name, value || baseUrl])),
    // It needs no password.
    SMTP_URL: "smtp://mail.example.com",
  };
}

describe.each(units)("$name.service", (unit) => {
  test("takes each secret from a file of the machine, and tells its process where it finds it", () => {
    const credentials = unit.credentials();
    expect(credentials).toHaveProperty("database_url");
    for (const [name, file] of Object.entries(credentials)) {
      expect(file).toBe(`/etc/tallyhook/secrets/${name}`);
    }
    const told = Object.entries(unit.environment({})).filter(([name]) => name.endsWith("_FILE"));
    const places = Object.keys(credentials).map((name) => [
      `${name.toUpperCase()}_FILE`,
      `/run/credentials/${unit.name}.service/${name}`,
    ]);
    expect(Object.fromEntries(told)).toEqual(Object.fromEntries(places));
  });

  const loads = (environment: Record<string, string>) =>
    loadConfig(environment, (path) => secretValues[basename(path)] ?? "");

  test("has an environment that the configuration takes, with the service's address alone", () => {
    const { config, warnings } = loads(unit.environment({ SVC_BASE_URL: baseUrl }));
    expect(warnings).toEqual([]);
    expect(config.database).toBe("external");
  });

  test("needs no setting left out of the one file of settings but for whose secret it lacks", () => {
    const { warnings } = loads({ ...unit.environment(everySetting()), ...dropIn[unit.name] });
    expect(warnings).toEqual([]);
  });

  test("runs node itself, which gets every signal, and is held to memory, processes and a user of its own", () => {
    expect(unit.one("ExecStart")).toMatch(/^\/usr\/bin\/node --max-old-space-size=512 src\/bin\/tallyhook\.js \w/);
    expect([unit.one("MemoryMax"), unit.one("TasksMax")]).toEqual(["1G", "256"]);
    expect(unit.one("DynamicUser") ?? unit.one("User")).toMatch(/^(yes|tallyhook)$/);
    expect(unit.one("InaccessiblePaths")).toBe("/etc/tallyhook/secrets");
  });
});

describe.each(longRunning)("the unit of the %s", (name) => {
  const unit = readUnit(`tallyhook-${name}`);
  const container = service(compose, name);

  test("runs what its container runs, with its secrets and its time to end", () => {
    expect(unit.one("ExecStart")).toBe(`/usr/bin/${container.command?.join(" ")}`);
    expect(Object.keys(unit.credentials()).toSorted()).toEqual(container.secrets?.toSorted());
    expect(durationMs(unit.one("TimeoutStopSec") ?? "")).toBe(durationMs(container.stop_grace_period ?? ""));
  });

  test("starts again whatever it failed of, however often, but for wrong usage", () => {
    expect(unit.one("Restart")).toBe("on-failure");
    expect(unit.one("RestartPreventExitStatus")).toBe("64");
    expect(unit.one("StartLimitIntervalSec")).toBe("0");
  });
});

describe("the script for commands by hand, and the line of the backup", () => {
  let machine: string;

  beforeAll(async () => {
    machine = await mkdtemp(join(tmpdir(), "tallyhook-machine-"));
    await mkdir(join(machine, "secrets"));
    await writeFile(join(machine, "tallyhook.env"), "SVC_BASE_URL=https://api.example.com\nRECONCILE_CRON=0 4 * * *\n");
    for (const [name, value] of Object.entries(secretValues)) {
      await writeFile(join(machine, "secrets", name), `${value}\n`);
    }
    await writeFile(join(machine, "secrets", "svc_api_key~"), "an editor's copy");
    const script = await readFile(join(unitFolder, "tallyhook"), "utf8");
    await writeFile(join(machine, "tallyhook"), onThisMachine(script));
  });
  afterAll(() => rm(machine, { recursive: true, force: true }));

  const onThisMachine = (text: string): string =>
    text
      .replaceAll("/etc/tallyhook", machine)
      .replaceAll("/var/lib/tallyhook", machine)
      .replaceAll("/var/backups/tallyhook", join(machine, "backups"))
      .replaceAll("/opt/tallyhook", inject("image"))
      .replaceAll("/usr/bin/node", process.execPath);

  const run = (program: string, args: string[], env: Record<string, string> = {}) =>
    new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) => {
      const options = { env: { PATH: process.env["PATH"] ?? "", ...env }, cwd: inject("image") };
      const child = execFile(program, args, options, (_, stdout, stderr) =>
        resolve({ code: child.exitCode, stdout, stderr }),
      );
    });

  test("a command by hand has the machine's settings and all its secrets", async () => {
    const { code, stdout, stderr } = await run("sh", [join(machine, "tallyhook"), "settings", "--json"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const inForce = JSON.parse(stdout) as { name: string; value: string; source: string }[];
    const given = inForce.filter(({ source }) => source !== "default");
    expect(Object.fromEntries(given.map(({ name, value }) => [name, value]))).toEqual({
      DATABASE_URL: "set",
      RECONCILE_CRON: "0 4 * * *",
      SVC_API_KEY: "set",
      SVC_BASE_URL: "https://api.example.com",
      SVC_WEBHOOK_SECRETS: "set",
      TALLYHOOK_DATA_DIR: machine,
      TALLYHOOK_ENCRYPTION_KEY: "set",
    });
  });

  test("a command by hand of somebody else says as whom to call it", async () => {
    await rm(join(machine, "secrets"), { recursive: true });
    expect(await run("sh", [join(machine, "tallyhook"), "doctor"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Run: sudo -u tallyhook tallyhook doctor") as string,
    });
  });

  test("the backup's line can be typed, and asks the database", async () => {
    const [program = "", ...args] = onThisMachine(readUnit("tallyhook-backup").one("ExecStart") ?? "").split(" ");
    const { code, stderr } = await run(program, args, {
      DATABASE_URL: secretValues["database_url"] ?? "",
    });
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining("nothing listens on 127.0.0.1:9") as string,
    });
  });
});

describe.skipIf(!systemdAnalyzes)("systemd-analyze", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "tallyhook-units-"));
    cpSync(unitFolder, folder, { recursive: true });
    // It looks whether the program is there.
    for (const name of readdirSync(folder).filter((each) => each.endsWith(".service"))) {
      const text = readFileSync(join(folder, name), "utf8");
      writeFileSync(join(folder, name), text.replaceAll("/usr/bin/node", process.execPath));
    }
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const analyze = (...args: string[]): { code: number | null; output: string } => {
    const { status, stdout, stderr } = spawnSync("systemd-analyze", args, { encoding: "utf8" });
    return { code: status, output: stdout + stderr };
  };
  const files = (): string[] =>
    readdirSync(folder)
      .filter((name) => /\.(service|timer|target)$/.test(name))
      .map((name) => join(folder, name));

  test("finds nothing to complain of in any unit", () => {
    expect(files()).toHaveLength(6);
    expect(analyze("verify", ...files())).toEqual({ code: 0, output: "" });
  });

  test("would complain of a key that is none", () => {
    const file = join(folder, "tallyhook-spoilt.service");
    writeFileSync(file, "[Service]\nExecStart=/bin/true\nProtectSytem=strict\n");
    expect(analyze("verify", file).output).toContain("ProtectSytem");
    return rm(file);
  });

  test.each(units)("puts the exposure of $name.service below 3.0", ({ name }) => {
    // Tenths; the exit code says whether it is above.
    const { code, output } = analyze(
      "security",
      "--offline=true",
      "--threshold=29",
      "--no-pager",
      join(folder, `${name}.service`),
    );
    expect(output).toMatch(/Overall exposure level/);
    expect(code, output).toBe(0);
  });
});
