import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadConfig } from "../../../src/app/config/config.ts";
import { envExample } from "../../../src/app/config/env-example.ts";
import { withEnvFile } from "../../../src/app/config/env-file.ts";
import { settingsPage } from "../../../src/app/config/settings-page.ts";
import { settings, topics } from "../../../src/app/config/variables.ts";
import { projectRoot } from "../../support/project-root.ts";

const read = (path: string): string => readFileSync(join(projectRoot, path), "utf8");
const stale = (command: string): string => `it is not what the code says: run "node src/bin/tallyhook.js ${command}"`;

test("docs/settings.md is what the code says of its settings", () => {
  const command = "settings --markdown > docs/settings.md";
  expect(read("docs/settings.md"), stale(command)).toBe(settingsPage());
});

test(".env.example is what the code says of its settings", () => {
  expect(read(".env.example"), stale("settings --env > .env.example")).toBe(envExample());
});

test("every setting has a topic and sentences on what it is for", () => {
  const listed = topics.flatMap((topic) => Object.keys(topic.settings));
  expect(listed).toEqual(Object.keys(settings));
  for (const [name, { about, should }] of Object.entries(settings)) {
    expect(about, name).toMatch(/^[A-Z].{10,}\.$/);
    expect(should, name).not.toMatch(/\.$/);
  }
});

describe("the lines of .env.example", () => {
  const uncommented = envExample().replaceAll(/^#(?=[A-Z_]+=)/gm, "");
  const named = [...uncommented.matchAll(/^([A-Z_]+)=/gm)].map(([, name = ""]) => name);

  const ofCompose = [
    "SECRETS_DIR",
    "COMPOSE_FILE",
    "ALERT_SETTINGS",
    "FORWARD_SETTINGS",
    "PROMETHEUS_PORT",
    "GRAFANA_PORT",
  ];

  test("name every setting once, and what Compose reads itself", () => {
    const expected = Object.entries(settings).map(([name, { isSecret }]) =>
      isSecret && !["REDIS_URL", "SMTP_URL"].includes(name) ? `${name}_FILE` : name,
    );
    expect(named.toSorted()).toEqual([...expected, ...ofCompose].toSorted());
  });

  test("can be read and loaded, each with the value that it shows", () => {
    const text = uncommented.replace(/^SVC_BASE_URL=$/m, "SVC_BASE_URL=https://api.example.com");
    const { environment, fromFile } = withEnvFile({}, ".env", () => text);
    expect(fromFile).toBe(named.length);
    const key = "0123456789abcdef".repeat(4);
    const urls = "postgres://tallyhook:pppp@postgres:5432/tallyhook";
    const contents: Record<string, string> = { otel_exporter_otlp_headers: "a=b" };
    const ours = Object.entries(environment).filter(([name]) => !ofCompose.includes(name));
    const loaded = loadConfig(Object.fromEntries(ours), (path) => {
      const name = path.replace("/etc/tallyhook/secrets/", "");
      return contents[name] ?? (name.endsWith("database_url") || name.includes("direct") ? urls : key);
    });
    expect(loaded.warnings).toEqual([]);
    expect(loaded.settings.filter(({ source }) => source === "default")).toEqual([]);
  });
});
