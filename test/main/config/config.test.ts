import { chmodSync, chownSync, lchownSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readEnvFile, withEnvFile } from "../../../src/app/config/env-file.ts";
import { loadConfig } from "../../../src/app/config/config.ts";
import { ConfigurationError } from "../../../src/platform/errors.ts";

type Env = Record<string, string>;

const key = "0123456789abcdef".repeat(4);
const webhookSecret = "whsec_0123456789abcdef";
const complete: Env = {
  DATABASE_URL: "postgres://app:hunter2@db.example.com:5432/tallyhook",
  REPORTS_DATABASE_URL: "postgres://app:hunter2@standby.example.com:5432/tallyhook",
  REPORTS_MAX_LAG_SECONDS: "3600",
  REDIS_URL: "rediss://:hunter2@redis.example.com:6380",
  SVC_BASE_URL: "https://api.example.com/",
  SVC_API_KEY: "svc_test_sk_hunter2",
  SVC_WEBHOOK_SECRETS: `${webhookSecret}, older-${webhookSecret}`,
  SVC_SIGNATURE_SCHEME: "hex",
  SVC_SIGNATURE_TOLERANCE_SECONDS: "60",
  SVC_EVENT_PLACES: "id=meta.uid, object=payload",
  WEBHOOK_MAX_BYTES: "2048",
  WEBHOOK_MAX_CONNECTIONS: "10",
  HOST: "::1",
  PORT: "0",
  ADMIN_HOST: "localhost",
  ADMIN_PORT: "0",
  METRICS_TOKEN: "hunter2-hunter2-hunter2",
  SANDBOX_PORT: "65535",
  DASHBOARD_HOST: "0.0.0.0",
  DASHBOARD_PORT: "0",
  PUBLIC_DASHBOARD_URL: "https://tallyhook.example.com/",
  DASHBOARD_OIDC_ISSUER: "https://login.example.com",
  DASHBOARD_OIDC_CLIENT_ID: "tallyhook",
  DASHBOARD_OIDC_CLIENT_SECRET: "hunter2-of-the-provider",
  DASHBOARD_OIDC_CLAIM: "roles",
  DASHBOARD_OIDC_ROLES: "oncall=operator+viewer",
  DASHBOARD_PROXY_HEADER: "X-Forwarded-Email",
  DASHBOARD_PROXY_SECRET: "hunter2-of-the-proxy",
  DASHBOARD_PROXY_PEERS: "10.0.0.7",
  DASHBOARD_PROXIES: "1",
  PUBLIC_URL: "http://127.0.0.1:3000/hooks/",
  RUNBOOKS_URL: "https://github.com/example/tallyhook/blob/main/docs/runbooks.md",
  TALLYHOOK_DATA_DIR: "/srv/tallyhook",
  TALLYHOOK_HANDLERS: "/srv/handlers",
  TALLYHOOK_ENCRYPTION_KEY: key.toUpperCase(),
  TALLYHOOK_PREVIOUS_ENCRYPTION_KEYS: `${"a".repeat(64)},${"b".repeat(64)}`,
  TALLYHOOK_TIME_ZONE: "Europe/Berlin",
  CARD_NETWORK_REGION: "mena",
  RECONCILE_CRON: "0 4 * * *",
  DATABASE_SILENCE_SECONDS: "60",
  EVENTS_KEEP_DAYS: "90",
  CHANGES_KEEP_DAYS: "1",
  RECONCILE_GRACE_SECONDS: "0",
  RECONCILE_MODE: "report",
  RECONCILE_IDENTITIES: "chargeback_match=enforce, double_order=off",
  REPORTS_CRON: "0 7 * * *",
  REPORTS_MAIL_TO: "finance@example.com, cfo@example.com",
  REPORTS_MAIL: "daily-control, journal:month",
  REPORTS_MAIL_FORMAT: "html,xlsx",
  REPORTS_CLOSE_FOUR_EYES: "always",
  SMTP_URL: "smtps://mailer:hunter2@mail.example.com",
  MAIL_FROM: "tallyhook@example.com",
  ALERT_SETTINGS_FILE: "/srv/alerts.jsonc",
  FORWARD_SETTINGS_FILE: "/srv/forward.jsonc",
  ALERT_SLACK_URL: "https://hooks.slack.com/services/T0/B0/hunter2",
  LOG_LEVEL: "debug",
  LOG_FORMAT: "json",
  OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318",
  OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20hunter2-of-the-collector,x-tenant=shop",
  OTEL_SERVICE_NAME: "shop webhooks",
  OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=production",
  OTEL_TRACES_SAMPLER: "traceidratio",
  OTEL_TRACES_SAMPLER_ARG: "0.1",
  OTEL_SDK_DISABLED: "false",
};

/** The message of the refusal. */
function refusal(env: Env, readFile?: (path: string) => string): string {
  try {
    loadConfig(env, readFile);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    return (error as Error).message;
  }
  throw new Error("it was accepted");
}

test("nothing set gives the embedded defaults and the sandbox", () => {
  const { config, secrets, warnings } = loadConfig({});
  expect(config).toEqual({
    database: "embedded",
    queueBackend: "postgres",
    service: { kind: "sandbox" },
    signature: { scheme: "svc", toleranceSeconds: 300 },
    eventPlaces: {
      id: "id",
      type: "type",
      createdAt: "created_at",
      apiVersion: "api_version",
      object: "data.object",
    },
    receiver: { host: "0.0.0.0", port: 3000, maxBodyBytes: 1_048_576, maxConnections: 1_024 },
    admin: { host: "127.0.0.1", port: null },
    dashboard: {
      host: "127.0.0.1",
      port: 3002,
      publicUrl: null,
      proxies: 0,
      proxySignIn: null,
      oidc: null,
    },
    databaseSilenceSeconds: 300,
    eventsKeepDays: 400,
    changesKeepDays: 30,
    sandbox: { port: 4010 },
    publicUrl: null,
    runbooksUrl: null,
    dataDir: `${process.cwd()}/.data`,
    handlersDir: null,
    encryptionKey: "local",
    timeZone: "UTC",
    networkRegion: "global",
    reconcile: { cron: "30 3 * * *", graceSeconds: 5, reportOnly: false, identities: {} },
    reportsMaxLagSeconds: 300,
    closeFourEyes: "dashboard",
    reportMail: null,
    mailFrom: null,
    alerts: { settingsFile: null },
    forward: { settingsFile: null },
    logLevel: "info",
    logFormat: "auto",
    tracing: null,
  });
  expect(secrets.databaseUrl).toBeNull();
  expect(secrets.webhookSecrets).toEqual([]);
  expect(warnings).toEqual([]);
});

test("everything set is taken", () => {
  const { config, secrets, warnings } = loadConfig(complete);
  expect(config).toEqual({
    database: "external",
    queueBackend: "redis",
    service: { kind: "remote", baseUrl: "https://api.example.com" },
    signature: { scheme: "hex", toleranceSeconds: 60 },
    eventPlaces: {
      id: "meta.uid",
      type: "type",
      createdAt: "created_at",
      apiVersion: "api_version",
      object: "payload",
    },
    receiver: { host: "::1", port: 0, maxBodyBytes: 2_048, maxConnections: 10 },
    admin: { host: "localhost", port: 0 },
    dashboard: {
      host: "0.0.0.0",
      port: 0,
      publicUrl: "https://tallyhook.example.com",
      proxies: 1,
      proxySignIn: { header: "x-forwarded-email", peers: ["10.0.0.7"] },
      oidc: {
        issuer: "https://login.example.com",
        clientId: "tallyhook",
        claim: "roles",
        rolesByGroup: { oncall: ["operator", "viewer"] },
      },
    },
    databaseSilenceSeconds: 60,
    eventsKeepDays: 90,
    changesKeepDays: 1,
    sandbox: { port: 65_535 },
    publicUrl: "http://127.0.0.1:3000/hooks",
    runbooksUrl: "https://github.com/example/tallyhook/blob/main/docs/runbooks.md",
    dataDir: "/srv/tallyhook",
    handlersDir: "/srv/handlers",
    encryptionKey: "environment",
    timeZone: "Europe/Berlin",
    networkRegion: "mena",
    reconcile: {
      cron: "0 4 * * *",
      graceSeconds: 0,
      reportOnly: true,
      identities: { chargeback_match: "enforce", double_order: "off" },
    },
    reportsMaxLagSeconds: 3_600,
    closeFourEyes: "always",
    reportMail: {
      cron: "0 7 * * *",
      to: ["finance@example.com", "cfo@example.com"],
      reports: [
        { name: "daily-control", word: null },
        { name: "journal", word: "month" },
      ],
      formats: ["html", "xlsx"],
    },
    mailFrom: "tallyhook@example.com",
    alerts: { settingsFile: "/srv/alerts.jsonc" },
    forward: { settingsFile: "/srv/forward.jsonc" },
    logLevel: "debug",
    logFormat: "json",
    tracing: { endpoint: "http://collector:4318" },
  });
  expect(secrets.tracingHeaders).toBe(complete["OTEL_EXPORTER_OTLP_HEADERS"]);
  expect(secrets.databaseUrl).toBe(complete["DATABASE_URL"]);
  expect(secrets.reportsDatabaseUrl).toBe(complete["REPORTS_DATABASE_URL"]);
  expect(secrets.webhookSecrets).toEqual([webhookSecret, `older-${webhookSecret}`]);
  expect(secrets.encryptionKey).toBe(key);
  expect(secrets.alertSecrets["ALERT_SLACK_URL"]).toBe(complete["ALERT_SLACK_URL"]);
  expect(secrets.previousEncryptionKeys).toEqual(["a".repeat(64), "b".repeat(64)]);
  expect(warnings).toEqual([]);
});

test("OTEL_SDK_DISABLED switches traces off, whatever else is set", () => {
  expect(loadConfig({ ...complete, OTEL_SDK_DISABLED: "true" }).config.tracing).toBeNull();
});

test("an external database without a key has none: each machine would make another", () => {
  expect(loadConfig({ DATABASE_URL: "postgres://h/db" }).config.encryptionKey).toBe("none");
});

test("what was loaded cannot be changed", () => {
  const { config, secrets } = loadConfig(complete);
  expect(() => Object.assign(config, { database: "embedded" })).toThrow(TypeError);
  expect(() => Object.assign(config.receiver, { port: 1 })).toThrow(TypeError);
  expect(() => Object.assign(secrets, { metricsToken: "" })).toThrow(TypeError);
  expect(() => (secrets.webhookSecrets as string[]).push("x")).toThrow(TypeError);
});

test("secrets show themselves to nobody who does not ask by name", () => {
  const loaded = loadConfig(complete);
  const { secrets } = loaded;
  const shown = [
    String(secrets),
    JSON.stringify(loaded),
    inspect(loaded, { depth: 9, showHidden: true }),
    JSON.stringify({ ...secrets }),
    JSON.stringify(Object.entries(secrets)),
    `${secrets}`,
  ].join("\n");
  expect(shown).not.toMatch(/hunter2|whsec|0123456789abcdef/);
  expect(secrets.metricsToken).toBe("hunter2-hunter2-hunter2");
});

describe("bad values", () => {
  test("all of them are named in one message, with what each should be", () => {
    const message = refusal({
      PORT: "70000",
      LOG_LEVEL: "loud",
      DATABASE_URL: "mysql://u:hunter2@h/x",
      SVC_WEBHOOK_SECRETS: "hunter2",
    });
    expect(message).toBe(
      [
        "4 settings are wrong:",
        "  - DATABASE_URL does not begin with postgres:// or postgresql://. It should be a URL such as postgres://user:password@host:5432/database (special characters percent-encoded), or the word embedded.",
        "  - SVC_WEBHOOK_SECRETS has 7 bytes in its secret number 1. It should be secrets of at least 16 bytes each, newest first, separated by commas; or none.",
        '  - PORT is "70000". It should be a whole number from 0 to 65535 (0 picks a free port).',
        '  - LOG_LEVEL is "loud". It should be one of fatal, error, warn, info, debug, trace, silent.',
      ].join("\n"),
    );
  });

  test("a secret that its own comma split is told from a short one, and not shown", () => {
    const message = refusal({ SVC_WEBHOOK_SECRETS: `v1,${webhookSecret}` });
    expect(message).toContain("commas separate secrets; if one secret was split, leave out");
    expect(message).not.toContain(webhookSecret);
  });

  test.each([
    ["PORT", "-1"],
    ["PORT", "80a"],
    ["PORT", "3e3"],
    ["PORT", "0x50"],
    ["PORT", " 80"],
    ["ADMIN_PORT", "65536"],
    ["SANDBOX_PORT", "4010.5"],
    ["HOST", "http://localhost"],
    ["HOST", "127.0.0.1:80"],
    ["ADMIN_HOST", "a b"],
    ["PUBLIC_URL", "hooks.example.com"],
    ["PUBLIC_URL", "http://hooks.example.com"],
    ["PUBLIC_URL", "ftp://hooks.example.com"],
    ["SVC_SIGNATURE_SCHEME", "SVC"],
    ["SVC_SIGNATURE_TOLERANCE_SECONDS", "0"],
    ["SVC_SIGNATURE_TOLERANCE_SECONDS", "999999"],
    ["SVC_EVENT_PLACES", "data.object"],
    ["SVC_EVENT_PLACES", "object=data.object,body=data"],
    ["SVC_EVENT_PLACES", "object=data..object"],
    ["SVC_EVENT_PLACES", "object="],
    ["SVC_EVENT_PLACES", "id=a,id=b"],
    ["SVC_EVENT_PLACES", "constructor=a"],
    ["WEBHOOK_MAX_BYTES", "1MB"],
    ["WEBHOOK_MAX_BYTES", "99999999999"],
    ["WEBHOOK_MAX_CONNECTIONS", "0"],
    ["TALLYHOOK_TIME_ZONE", "Mars/Olympus"],
    ["TALLYHOOK_TIME_ZONE", "+01:00"],
    ["RECONCILE_CRON", "@daily"],
    ["DATABASE_SILENCE_SECONDS", "5"],
    ["EVENTS_KEEP_DAYS", "89"],
    ["CHANGES_KEEP_DAYS", "0"],
    ["RECONCILE_GRACE_SECONDS", "-5"],
    ["RECONCILE_MODE", "look"],
    ["RECONCILE_IDENTITIES", "chargeback_match=strict"],
    ["RECONCILE_IDENTITIES", "chargeback_match"],
    ["RECONCILE_IDENTITIES", "__proto__=off"],
    ["REPORTS_MAX_LAG_SECONDS", "0"],
    ["REPORTS_CRON", "daily"],
    ["REPORTS_MAIL_TO", "finance"],
    ["REPORTS_MAIL_TO", "a@example.com,"],
    ["REPORTS_MAIL", "month-end:year"],
    ["REPORTS_MAIL", "daily control"],
    ["REPORTS_MAIL_FORMAT", "html,pdf"],
    ["REPORTS_CLOSE_FOUR_EYES", "yes"],
    ["LOG_LEVEL", ""],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"],
    ["OTEL_TRACES_SAMPLER", "sometimes"],
    ["OTEL_TRACES_SAMPLER_ARG", "1.5"],
  ])("%s=%j is refused and shown", (name, value) => {
    const message = refusal({ [name]: value });
    expect(message).toMatch(new RegExp(`One setting is wrong:\n  - ${name} is `));
    if (value !== "") expect(message).toContain(JSON.stringify(value));
    expect(message).toContain("It should be");
  });

  test.each([
    ["DATABASE_URL", "postgres://u:hunter2@host:port/x"],
    ["DATABASE_URL", "hunter2"],
    ["DATABASE_URL", "postgres://u:a@hunter2#b@host/x"],
    ["DATABASE_URL", "postgres://u:a@hunter2/b@host/x"],
    ["DATABASE_URL", "postgres://hunter2:12/b@host/x"],
    ["DATABASE_URL", "postgres://u:a@hunter2?b@host/x"],
    ["DATABASE_URL", "postgres://u:12@hunter2#"],
    ["REDIS_URL", "redis://:a@hunter2#b@host:6379"],
    ["REDIS_URL", "http://:hunter2@h"],
    ["SVC_WEBHOOK_SECRETS", "hunter2,hunter2"],
    ["SVC_WEBHOOK_SECRETS", `${webhookSecret},`],
    ["SVC_WEBHOOK_SECRETS", `${webhookSecret},,${webhookSecret}`],
    ["SVC_WEBHOOK_SECRETS", `${webhookSecret}\n${webhookSecret}`],
    ["METRICS_TOKEN", "hunter2"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "hunter2"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "x-key=hunter2,"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "x-key=hunter2%0a"],
    ["METRICS_TOKEN", "hunter2 hunter2 hunter2"],
    ["TALLYHOOK_ENCRYPTION_KEY", "hunter2"],
    ["TALLYHOOK_ENCRYPTION_KEY", `${key}0`],
    ["TALLYHOOK_PREVIOUS_ENCRYPTION_KEYS", `${key},hunter2`],
  ])("%s is refused without being shown", (name, value) => {
    const message = refusal({ [name]: value });
    expect(message).toMatch(new RegExp(`One setting is wrong:\n  - ${name} (has|is|does) .*It should be`));
    expect(message).not.toContain("hunter2");
    expect(message).not.toContain(webhookSecret);
  });

  test.each([
    ["SVC_BASE_URL", "svc_live_sk_hunter2"],
    ["SVC_BASE_URL", "https://us@er:hunter2@api.example.com"],
    ["PUBLIC_URL", "https://user:pa/hunter2@hooks.example.com"],
    ["PUBLIC_URL", "https://hooks.example.com/?token=hunter2"],
    ["HOST", "whsec_hunter2"],
    ["SVC_WEBHOOK_SECRETS_FILE", "whsec_hunter2"],
    ["SVC_WEBHOOK_SECRETS_FILE", "hunter2hunter2hunter2"],
    ["TALLYHOOK_ENCRYPTION_KEY_FILE", "hunter2".repeat(9)],
    ["DATABASE_URL_FILE", "postgres://u:a/hunter2@host/x"],
  ])("%s holds a secret that belongs elsewhere (%s), which is not shown", (name, value) => {
    const message = refusal({ [name]: value }, () => {
      throw new Error("ENOENT");
    });
    expect(message).toContain(`  - ${name}`);
    expect(message).not.toContain("hunter2");
  });

  test.each(['"', "'"])("a value in quotation marks (%s), as some tools keep them", (mark) => {
    const quoted = `${mark}${webhookSecret}${mark}`;
    for (const message of [
      refusal({ SVC_WEBHOOK_SECRETS: quoted }),
      refusal({ SVC_WEBHOOK_SECRETS_FILE: "/run/secrets/x" }, () => `${quoted}\n`),
    ]) {
      expect(message).toMatch(/SVC_WEBHOOK_SECRETS(_FILE)? is in quotation marks/);
      expect(message).not.toContain(webhookSecret);
    }
    expect(refusal({ PORT: `${mark}3000${mark}` })).toContain("PORT is in quotation marks");
  });

  test.each([
    "postgres://u:a%40b%23c%2Fd@host/x",
    "postgres://u:a@b@host:5432/x",
    "postgres://u:a@host/x?sslmode=require&options=-c%20geqo%3Doff",
    "postgresql:///x?host=/var/run/postgresql",
  ])("DATABASE_URL=%s is taken", (url) => {
    expect(loadConfig({ DATABASE_URL: url }).secrets.databaseUrl).toBe(url);
  });

  test("SVC_WEBHOOK_SECRETS=none, also from a file, says that the database has them; none among others is a short one", () => {
    expect(loadConfig({ SVC_WEBHOOK_SECRETS: "none" }).secrets.webhookSecrets).toEqual([]);
    const file = { SVC_WEBHOOK_SECRETS_FILE: "/run/secrets/x" };
    expect(loadConfig(file, () => "none\n").secrets.webhookSecrets).toEqual([]);
    expect(refusal({ SVC_WEBHOOK_SECRETS: `none,${webhookSecret}` })).toContain("has 4 bytes");
  });

  test.each([
    "DATABASE_URL",
    "REDIS_URL",
    "SVC_WEBHOOK_SECRETS",
    "METRICS_TOKEN",
    "TALLYHOOK_ENCRYPTION_KEY",
    "TALLYHOOK_PREVIOUS_ENCRYPTION_KEYS",
  ])("an empty %s is an error and never means none", (name) => {
    for (const value of ["", "  "]) {
      expect(refusal({ [name]: value })).toContain(`${name} is empty. It should be`);
    }
    const file = { [`${name}_FILE`]: "/run/secrets/x" };
    expect(refusal(file, () => "\n")).toContain(`${name}_FILE: the file "/run/secrets/x" is empty`);
  });
});

describe("the service's address", () => {
  const withUrl = (url: string): Env => ({
    SVC_BASE_URL: url,
    SVC_API_KEY: "svc_test_sk_1",
    DATABASE_URL: "embedded",
  });

  test.each([
    ["https://api.example.com", "https://api.example.com"],
    ["https://api.example.com/base/", "https://api.example.com/base"],
    ["http://127.0.0.1:4010", "http://127.0.0.1:4010"],
    ["http://localhost:4010/", "http://localhost:4010"],
    ["http://[::1]:4010", "http://[::1]:4010"],
  ])("%s is taken", (url, baseUrl) => {
    expect(loadConfig(withUrl(url)).config.service).toEqual({ kind: "remote", baseUrl });
  });

  test.each([
    ["https://api.example.com/v1", /ends with \/v1/],
    ["https://api.example.com/v1/", /ends with \/v1/],
    ["http://api.example.com", /unencrypted/],
    ["http://127.0.0.1.example.com", /unencrypted/],
    ["https://api.example.com?x=1", /has a \? or #/],
    ["api.example.com", /is not a URL/],
    ["https://key:hunter2@api.example.com", /user name or password/],
  ])("%s is refused", (url, why) => {
    const message = refusal(withUrl(url));
    expect(message).toMatch(why);
    expect(message).not.toContain("hunter2");
  });

  test("address and key come together or not at all", () => {
    expect(refusal({ SVC_BASE_URL: "https://api.example.com" })).toMatch(/SVC_BASE_URL is set and SVC_API_KEY is not/);
    expect(refusal({ SVC_API_KEY: "svc_test_sk_1" })).toMatch(/SVC_API_KEY is set and SVC_BASE_URL is not/);
  });

  test("a bad one of the two is one problem, not two", () => {
    expect(refusal({ ...withUrl("nonsense") })).toMatch(/^One setting/);
    expect(refusal({ SVC_BASE_URL: "nonsense" })).toMatch(/^One setting/);
  });
});

test.each([
  [{ REPORTS_CRON: "0 7 * * *" }, /REPORTS_CRON is set and REPORTS_MAIL_TO is not/],
  [{ REPORTS_MAIL_TO: "a@example.com" }, /REPORTS_MAIL_TO is set and REPORTS_CRON is not/],
  [{ REPORTS_CRON: "0 7 * * *", REPORTS_MAIL_TO: "a@example.com" }, /SMTP_URL is not/],
  [
    { SMTP_URL: "smtp://127.0.0.1:25/?ignoreTLS=true", MAIL_FROM: "a@example.com" },
    /SMTP_URL has the parameter ignoreTLS, and there are no parameters: smtp:\/\/ is encrypted/,
  ],
  [{ SMTP_URL: "smtp://127.0.0.1/inbox", MAIL_FROM: "a@example.com" }, /SMTP_URL has something/],
])("%j is not enough to mail reports", (env, why) => {
  expect(refusal(env)).toMatch(why);
});

test.each(["h1,h2", "h1:5432,h2:5432", "u:p%2C@h1,h2"])(
  "several hosts of PostgreSQL are refused, with what to give in their place: %s",
  (hosts) => {
    const message = refusal({ DATABASE_URL: `postgres://${hosts}/db?target_session_attrs=any` });
    expect(message).toMatch(/DATABASE_URL names several hosts, .* one address that follows/);
  },
);

test("a comma in the password is no list of hosts", () => {
  const url = "postgres://u:a,b@h/db";
  expect(loadConfig({ DATABASE_URL: url }).secrets.databaseUrl).toBe(url);
});

test("a standby for reports needs a database that can have one", () => {
  expect(refusal({ REPORTS_DATABASE_URL: "postgres://h/db" })).toMatch(
    /REPORTS_DATABASE_URL is set, and the embedded database has no standby/,
  );
});

test("two listeners on one port are refused", () => {
  expect(refusal({ PORT: "3001", ADMIN_PORT: "3001" })).toMatch(/PORT and ADMIN_PORT are both 3001/);
});

describe("secrets from files", () => {
  const readFile = (path: string) => {
    if (path === "/run/secrets/db") return "postgres://u:hunter2@h/x\n";
    if (path === "/run/secrets/short") return "hunter2\r\n";
    throw Object.assign(new Error("ENOENT"), { code: "ENOENT" });
  };

  test("are read without the line break at their end", () => {
    const { config, secrets } = loadConfig({ DATABASE_URL_FILE: "/run/secrets/db" }, readFile);
    expect(secrets.databaseUrl).toBe("postgres://u:hunter2@h/x");
    expect(config.database).toBe("external");
  });

  test("and from the variable too are refused", () => {
    const both = { DATABASE_URL: "postgres://h/x", DATABASE_URL_FILE: "/run/secrets/db" };
    expect(refusal(both, readFile)).toContain("DATABASE_URL and DATABASE_URL_FILE are both set. Keep one of them.");
  });

  test("that cannot be read or hold something bad are named by file and not shown", () => {
    expect(refusal({ METRICS_TOKEN_FILE: "/nowhere" }, readFile)).toContain(
      'METRICS_TOKEN_FILE: the file "/nowhere" cannot be read.',
    );
    const message = refusal({ METRICS_TOKEN_FILE: "/run/secrets/short" }, readFile);
    expect(message).toContain("METRICS_TOKEN_FILE is shorter than 16 bytes");
    expect(message).not.toContain("hunter2");
  });
});

test("secrets of alert channels bear any names, and come from files too", () => {
  const { secrets } = loadConfig({ ALERT_CRM_SECRET_FILE: "/run/secrets/crm" }, () => "hunter2\n");
  expect(secrets.alertSecrets["ALERT_CRM_SECRET"]).toBe("hunter2");
  expect(refusal({ ALERT_CRM_SECRET: "two words", ALERT_URL: "" })).toMatch(
    /ALERT_CRM_SECRET has spaces[^]*ALERT_URL is empty/,
  );
});

test("a misspelled variable stops the start, with what was meant", () => {
  const wrong = {
    SVC_WEBHOOK_SECRET: webhookSecret,
    TALLYHOOK_TIMEZONE: "UTC",
    DATABSE_URL: "postgres://u:hunter2@h/x",
    REDIS_ULR: "redis://h",
  };
  const message = refusal(wrong);
  for (const [name, meant] of [
    ["SVC_WEBHOOK_SECRET", "SVC_WEBHOOK_SECRETS"],
    ["TALLYHOOK_TIMEZONE", "TALLYHOOK_TIME_ZONE"],
    ["DATABSE_URL", "DATABASE_URL"],
    ["REDIS_ULR", "REDIS_URL"],
  ]) {
    expect(message).toContain(`${name} is not a setting. Did you mean ${meant}? Rename it, or unset it.`);
  }
  expect(message).not.toContain("hunter2");
});

test("so does a misspelled setting that is no secret: with its default something else would be done", () => {
  const wrong = {
    RECONCILE_MOD: "report",
    RECONCILE_GRACE_SECOND: "0",
    DATABASE_SILENCE_SECOND: "60",
    WEBHOOK_MAXBYTES: "2048",
    TALLYHOK_DATA_DIR: "/data",
    ALERT_SETTING_FILE: "/alerts.jsonc",
    ALERT_SETTINGS_FILES: "/alerts.jsonc",
  };
  const message = refusal(wrong);
  for (const [name, meant] of [
    ["RECONCILE_MOD", "RECONCILE_MODE"],
    ["RECONCILE_GRACE_SECOND", "RECONCILE_GRACE_SECONDS"],
    ["DATABASE_SILENCE_SECOND", "DATABASE_SILENCE_SECONDS"],
    ["WEBHOOK_MAXBYTES", "WEBHOOK_MAX_BYTES"],
    ["TALLYHOK_DATA_DIR", "TALLYHOOK_DATA_DIR"],
    ["ALERT_SETTING_FILE", "ALERT_SETTINGS_FILE"],
    ["ALERT_SETTINGS_FILES", "ALERT_SETTINGS_FILE"],
  ]) {
    expect(message).toContain(`${name} is not a setting. Did you mean ${meant}?`);
  }
  expect(message).toContain("7 settings are wrong");
});

test("others' variables are none of ours, and one that only begins like ours does nothing", () => {
  const { warnings } = loadConfig({
    TALLYHOOK_SOMETHING_ELSE_ALTOGETHER: "1",
    DATABASE_USER: "u",
    DATABASE_NAME: "n",
    DATABASE_URI: "postgres://h/another",
    DATABASE_URL: "postgres://h/x",
    HOSTS: "a",
    PATH: "/bin",
    LOGLEVEL: "loud",
    MAILFROM: "root",
    WEBHOOK_URL: "https://hooks.example.com",
    PUBLIC_API: "x",
    SHOP_URL: "https://shop.example.com",
    ALERTMANAGER_URL: "http://alerts",
  });
  expect(warnings).toEqual([
    "TALLYHOOK_SOMETHING_ELSE_ALTOGETHER is set, but there is no such setting: it does nothing.",
  ]);
});

describe("a name in .env that is no setting", () => {
  const fromFile = (env: Record<string, string>) => loadConfig(env, () => "", {});

  test.each([
    ["METRICS_PORT", "Did you mean ADMIN_PORT?"],
    ["RECEIVER_PRT", "Did you mean PORT?"],
    ["ALERTS_CONFIG", "Did you mean ALERT_SETTINGS_FILE?"],
    ["PRT", "Did you mean PORT?"],
    ["LOGLEVEL", "Did you mean LOG_LEVEL?"],
    ["TALLYHOOK_SOMETHING_ELSE_ALTOGETHER", "Remove it from .env"],
  ])("%s stops the start: %s", (name, advice) => {
    expect(() => fromFile({ [name]: "1" })).toThrow(ConfigurationError);
    expect(() => fromFile({ [name]: "1" })).toThrow(`${name} is not a setting. ${advice}`);
  });

  test("is named in a warning where nothing of ours is like it, and may not be a secret", () => {
    const { warnings } = fromFile({ SHOP_COLOUR: "1", whsec_c2VjcmV0: "=" });
    expect(warnings).toEqual(["No settings of Tallyhook, though in .env: SHOP_COLOUR."]);
  });

  test("is left alone where it belongs to another program or to Compose", () => {
    const others = [
      ["PGHOST", "PGPORT", "PGDATABASE", "NODE_ENV", "NODE_OPTIONS", "TZ", "POSTGRES_PASSWORD"],
      ["COMPOSE_FILE", "SECRETS_DIR", "ALERT_SETTINGS", "FORWARD_SETTINGS"],
      ["PROMETHEUS_PORT", "GRAFANA_PORT", "DOCKER_HOST", "REDIS_PORT"],
    ].flat();
    expect(fromFile(Object.fromEntries(others.map((name) => [name, "1234"]))).warnings).toEqual([]);
  });
});

test("a service without a database is refused, unless the embedded one is asked for", () => {
  const service = { SVC_BASE_URL: "https://api.example.com", SVC_API_KEY: "svc_test_sk_1234" };
  expect(refusal(service)).toContain("SVC_BASE_URL is set and DATABASE_URL is not.");
  const { config, secrets } = loadConfig({ ...service, DATABASE_URL: "embedded" });
  expect([config.database, secrets.databaseUrl]).toEqual(["embedded", null]);
  expect(refusal({ DATABASE_URL: "embeded" })).toContain("or the word embedded");
});

test("a connection past a pooler is refused without one through it", () => {
  const direct = { DATABASE_DIRECT_URL: "postgres://u:hunter2@h/x" };
  for (const through of [{}, { DATABASE_URL: "embedded" }]) {
    const message = refusal({ ...direct, ...through });
    expect(message).toContain("DATABASE_DIRECT_URL is set and DATABASE_URL names no server.");
    expect(message).not.toContain("hunter2");
  }
  const { secrets } = loadConfig({ ...direct, DATABASE_URL: "postgres://p/x" });
  expect(secrets.databaseDirectUrl).toBe(direct.DATABASE_DIRECT_URL);
});

test("what .env says is added to the environment, which wins", () => {
  const read = (): string => 'PORT=3005\n# a remark\nLOG_LEVEL="debug"\n';
  expect(withEnvFile({ PORT: "4000" }, ".env", read)).toEqual({
    environment: { PORT: "4000", LOG_LEVEL: "debug" },
    fromFile: 1,
  });
  const missing = (): string => {
    throw Object.assign(new Error("no such file"), { code: "ENOENT" });
  };
  expect(withEnvFile({ PORT: "1" }, ".env", missing).fromFile).toBeNull();
  const unreadable = (): string => {
    throw Object.assign(new Error("not allowed"), { code: "EACCES" });
  };
  expect(() => withEnvFile({}, ".env", unreadable)).toThrow(".env exists and cannot be read");
});

test("a .env file of a Windows editor is read: with a byte order mark, and with CR at the ends of lines", () => {
  const text = "\ufeffPORT=3000\r\n# a comment\r\n\r\nexport LOG_LEVEL=debug\r\nHOST='::1'\r\n";
  const { environment } = withEnvFile({}, ".env", () => text);
  expect(environment).toEqual({ PORT: "3000", LOG_LEVEL: "debug", HOST: "::1" });
});

test.each([
  ["PORT=1\nwhsec_abc\nDATABASE_URL=x\n", "line 2 is not understood"],
  ["=x\nPORT=1", "line 1 is not understood"],
  ["PORT 1", "line 1 is not understood"],
  ["PORT=1\nSVC_API_KEY='whsec_abc\nHOST=::1\n", "line 2: the quotation mark"],
])("a .env file with a line that would be lost stops the start and names it: %j", (text, says) => {
  const refused = () => withEnvFile({}, ".env", () => text);
  expect(refused).toThrow(`.env, ${says}`);
  expect(refused).not.toThrow("whsec_abc");
});

test("a value of several lines in quotation marks is one setting", () => {
  const text = 'OTHER="one\ntwo words\n"\nPORT=1\n';
  expect(withEnvFile({}, ".env", () => text).environment["PORT"]).toBe("1");
});

describe.runIf(process.getuid?.() === 0)("a .env file that root finds", () => {
  const [writer, other] = [1, 2];
  let directory: string;
  let file: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "tallyhook-env-"));
    file = join(directory, ".env");
    writeFileSync(file, "PORT=4001\n", { mode: 0o644 });
  });
  afterEach(() => rmSync(directory, { recursive: true }));
  const port = () => withEnvFile({}, file, readEnvFile).environment["PORT"];

  test("is read where it is root's, or that of the directory's owner", () => {
    expect(port()).toBe("4001");
    chownSync(file, writer, writer);
    chownSync(directory, writer, writer);
    expect(port()).toBe("4001");
  });

  test("is refused where another user wrote it, or made a link of it, in a directory such as /tmp", () => {
    chownSync(file, writer, writer);
    expect(port).toThrow(/belongs to the user with id 1, who is neither you, nor root/);
    chownSync(directory, other, other);
    expect(port).toThrow(ConfigurationError);
    chownSync(file, 0, 0);
    renameSync(file, `${file}.root`);
    symlinkSync(`${file}.root`, file);
    lchownSync(file, writer, writer);
    expect(port).toThrow(/belongs to the user with id 1/);
  });

  test("is refused where every user may write to it", () => {
    chmodSync(file, 0o666);
    expect(port).toThrow(/Every user of this machine may write to .*\.env, so root does not read it/);
    chmodSync(file, 0o664);
    expect(port()).toBe("4001");
  });
});
