import { isIPv6 } from "node:net";
import { isLoopbackHost } from "../../platform/http/listen.ts";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { secretShapes } from "../../core/contract/secret-shapes.ts";
import { ConfigurationError } from "../../platform/errors.ts";
import { counted } from "../../platform/readable-text.ts";
import { redact, registerSecretShapes } from "../../platform/redaction.ts";
import { type Environment, type ReadFile, readSettings, unknownVariables } from "../../platform/settings.ts";
import { readEnvFile, withEnvFile } from "./env-file.ts";
import { type SettingInForce, settingsInForce } from "./settings-in-force.ts";
import {
  type Values,
  alsoCalled,
  embeddedDatabase,
  ofOthers,
  prefixedSecrets,
  prefixes,
  secretPrefixes,
  settings,
} from "./variables.ts";

// Before any value can be read, refused or logged.
registerSecretShapes(secretShapes);

/** Everything but secrets, from `configOf`; frozen. */
export type Config = DeepReadonly<ReturnType<typeof configOf>>;

/** Values can be read by name only: printing, logging or copying the object shows none of them. */
export type Secrets = Readonly<ReturnType<typeof secretsOf>>;

type DeepReadonly<T> = T extends (infer E)[]
  ? readonly DeepReadonly<E>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T;

export interface LoadedConfig {
  readonly config: Config;
  readonly secrets: Secrets;
  /** Printed, not fatal: where settings come from, and unknown variables with our prefixes. */
  readonly warnings: readonly string[];
  /** Every setting, as people may see it. */
  readonly settings: readonly SettingInForce[];
}

/** The user who called `sudo`. Not a setting, since it means nothing to a program that runs unattended. */
export const sudoUser = (env: Environment = process.env): string | undefined => env["SUDO_USER"];

/**
 * Loads the configuration of this process from its environment and the `.env` file of the current directory. Throws
 * `ConfigurationError`.
 */
export function loadOwnConfig(): LoadedConfig {
  const read = withEnvFile(process.env, ".env", readEnvFile);
  const loaded = loadConfig(read.environment, readText, process.env);
  if (read.fromFile === null) return loaded;
  showSdk(read.environment);
  const settingsRead = `${counted(read.fromFile, "setting comes", "settings come")}`;
  return { ...loaded, warnings: [`${settingsRead} from .env.`, ...loaded.warnings] };
}

/** OpenTelemetry's SDK reads its settings from the environment by itself, and knows no `.env` file. */
function showSdk(environment: Environment): void {
  for (const [name, value] of Object.entries(environment)) {
    if (name.startsWith("OTEL_")) process.env[name] ??= value;
  }
}

const readText: ReadFile = (file) => readFileSync(file, "utf8");

/**
 * Turns the environment into a frozen configuration. Has no side effects; reads only the files that `…_FILE` variables
 * name. Throws one `ConfigurationError` that lists every bad variable with its fault and its expected form. The error
 * never shows a secret.
 */
export function loadConfig(
  env: Environment = process.env,
  readFile: ReadFile = readText,
  /** The part of `env` that comes from no `.env` file. */
  own: Environment = env,
): LoadedConfig {
  const { values, problems: wrong } = readSettings(settings, env, readFile);
  const isFromFile = (name: string): boolean => own[name] === undefined;
  const unknown = unknownVariables(settings, env, { prefixes, alsoCalled, ofOthers, isFromFile });
  const misspelled = new Set(unknown.problems.map(({ name }) => name));
  const secretsFrom = (prefix: string) => readSettings(prefixedSecrets(prefix, env, misspelled), env, readFile);
  const [alerts, forward] = [secretsFrom(secretPrefixes.alerts), secretsFrom(secretPrefixes.forward)];
  const problems = [...wrong, ...alerts.problems, ...forward.problems];
  const bad = new Set(problems.map(({ name }) => name));
  const texts = [...[...problems, ...unknown.problems].map(({ text }) => text), ...contradictions(values, bad)];
  if (texts.length > 0) throw new ConfigurationError(explain(texts));
  return {
    config: freezeDeep(configOf(values)),
    secrets: redact(secretsOf(values, alerts.values, forward.values)),
    warnings: unknown.warnings,
    settings: settingsInForce(
      {
        ...settings,
        ...prefixedSecrets(secretPrefixes.alerts, env, misspelled),
        ...prefixedSecrets(secretPrefixes.forward, env, misspelled),
      },
      env,
      own,
    ),
  };
}

function configOf(values: Values) {
  const isOwnServer = isEmbedded(values.DATABASE_URL);
  return {
    /** `embedded`: our own PostgreSQL under `dataDir`; `external`: `secrets.databaseUrl`. */
    database: isOwnServer ? ("embedded" as const) : ("external" as const),
    /** The backend of BullMQ; `redis`: `secrets.redisUrl`. */
    queueBackend: values.REDIS_URL === null ? ("postgres" as const) : ("redis" as const),
    /** The commerce service; `sandbox` if none is configured. `baseUrl` has neither /v1 nor a trailing slash. */
    service: serviceOf(values),
    signature: {
      scheme: values.SVC_SIGNATURE_SCHEME,
      toleranceSeconds: values.SVC_SIGNATURE_TOLERANCE_SECONDS,
    },
    /** Paths to the parts of the envelope in an event's body. */
    eventPlaces: values.SVC_EVENT_PLACES,
    receiver: {
      host: values.HOST,
      port: values.PORT,
      maxBodyBytes: values.WEBHOOK_MAX_BYTES,
      maxConnections: values.WEBHOOK_MAX_CONNECTIONS,
    },
    /** Health and metrics of a process. `port` null: the default of its kind (main/metrics/serve-metrics.ts). */
    admin: { host: values.ADMIN_HOST, port: values.ADMIN_PORT },
    databaseSilenceSeconds: values.DATABASE_SILENCE_SECONDS,
    eventsKeepDays: values.EVENTS_KEEP_DAYS,
    changesKeepDays: values.CHANGES_KEEP_DAYS,
    sandbox: { port: values.SANDBOX_PORT },
    dashboard: {
      host: values.DASHBOARD_HOST,
      port: values.DASHBOARD_PORT,
      /** Has no trailing slash; null: only this machine reaches the dashboard. */
      publicUrl: values.PUBLIC_DASHBOARD_URL,
      proxies: values.DASHBOARD_PROXIES,
      /** A proxy that names the signed-in person; its secret is `Secrets.proxySecret`. */
      proxySignIn:
        values.DASHBOARD_PROXY_HEADER === null || values.DASHBOARD_PROXY_PEERS === null
          ? null
          : { header: values.DASHBOARD_PROXY_HEADER, peers: values.DASHBOARD_PROXY_PEERS },
      /** The company's sign-in; its secret is `Secrets.oidcClientSecret`. */
      oidc: oidcOf(values),
    },
    /** Has no trailing slash. */
    publicUrl: values.PUBLIC_URL,
    runbooksUrl: values.RUNBOOKS_URL,
    /** An absolute path, as all others are. */
    dataDir: resolve(values.TALLYHOOK_DATA_DIR),
    encryptionKey: encryptionKeySource(values.TALLYHOOK_ENCRYPTION_KEY, isOwnServer),
    /** IANA name: the zone of day cut-offs and of the nightly run. */
    timeZone: values.TALLYHOOK_TIME_ZONE,
    networkRegion: values.CARD_NETWORK_REGION,
    reconcile: {
      cron: values.RECONCILE_CRON,
      graceSeconds:
        values.RECONCILE_GRACE_SECONDS ?? (values.SVC_BASE_URL === null ? sandboxGraceSeconds : serviceGraceSeconds),
      reportOnly: values.RECONCILE_MODE === "report",
      /** The names are checked where the invariants are known. */
      identities: values.RECONCILE_IDENTITIES,
    },
    reportsMaxLagSeconds: values.REPORTS_MAX_LAG_SECONDS,
    closeFourEyes: values.REPORTS_CLOSE_FOUR_EYES,
    /** Null: no report is mailed. */
    reportMail: reportMailOf(values),
    /** Set whenever `secrets.smtpUrl` is. */
    mailFrom: values.MAIL_FROM,
    handlersDir: optionalPath(values.TALLYHOOK_HANDLERS),
    alerts: { settingsFile: optionalPath(values.ALERT_SETTINGS_FILE) },
    /** Null: forwarding is off. */
    forward: { settingsFile: optionalPath(values.FORWARD_SETTINGS_FILE) },
    logLevel: values.LOG_LEVEL,
    logFormat: values.LOG_FORMAT,
    /** Null: no spans. `endpoint` takes OTLP by HTTP; it has no /v1/traces. Its headers are `Secrets.tracingHeaders`. */
    tracing: tracingOf(values),
  };
}

type Service = { readonly kind: "sandbox" } | { readonly kind: "remote"; readonly baseUrl: string };

const serviceOf = ({ SVC_BASE_URL: baseUrl }: Values): Service =>
  baseUrl === null ? { kind: "sandbox" } : { kind: "remote", baseUrl };

/** A younger difference may be an event on its way. The sandbox delivers within seconds. */
const [serviceGraceSeconds, sandboxGraceSeconds] = [600, 5];

const optionalPath = (path: string | null): string | null => (path === null ? null : resolve(path));

const isEmbedded = (databaseUrl: string | null): boolean => databaseUrl === null || databaseUrl === embeddedDatabase;

function secretsOf(
  values: Values,
  alertSecrets: Readonly<Record<string, string | null>>,
  forwardSecrets: Readonly<Record<string, string | null>>,
) {
  return {
    databaseUrl: isEmbedded(values.DATABASE_URL) ? null : values.DATABASE_URL,
    /** Past the pooler. Where it is set, `databaseUrl` goes through one that lends connections by the transaction. */
    databaseDirectUrl: values.DATABASE_DIRECT_URL,
    /** A physical standby of `databaseUrl` that reports are read from; null: they are read from `databaseUrl`. */
    reportsDatabaseUrl: values.REPORTS_DATABASE_URL,
    redisUrl: values.REDIS_URL,
    serviceApiKey: values.SVC_API_KEY,
    /** Newest first; empty if the environment has none. The database may hold more. */
    webhookSecrets: values.SVC_WEBHOOK_SECRETS ?? [],
    oidcClientSecret: values.DASHBOARD_OIDC_CLIENT_SECRET,
    proxySecret: values.DASHBOARD_PROXY_SECRET,
    metricsToken: values.METRICS_TOKEN,
    /** 64 lower-case hex digits. */
    encryptionKey: values.TALLYHOOK_ENCRYPTION_KEY,
    previousEncryptionKeys: values.TALLYHOOK_PREVIOUS_ENCRYPTION_KEYS ?? [],
    smtpUrl: values.SMTP_URL,
    tracingHeaders: values.OTEL_EXPORTER_OTLP_HEADERS,
    /** Keyed by variable name, ALERT_…, as the channels in the alert settings refer to them. */
    alertSecrets: redact(alertSecrets),
    /** Keyed by variable name, FORWARD_…, as the destinations refer to them. */
    forwardSecrets: redact(forwardSecrets),
  };
}

/** `word` month: the previous month; otherwise the previous day. Names are checked where the reports are known. */
function reportMailOf(values: Values) {
  const { REPORTS_CRON: cronText, REPORTS_MAIL_TO: to } = values;
  if (cronText === null || to === null) return null;
  return { cron: cronText, to, reports: values.REPORTS_MAIL, formats: values.REPORTS_MAIL_FORMAT };
}

function tracingOf({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: disabled }: Values) {
  return endpoint === null || disabled === "true" ? null : { endpoint };
}

function oidcOf(values: Values) {
  const { DASHBOARD_OIDC_ISSUER: issuer, DASHBOARD_OIDC_CLIENT_ID: clientId } = values;
  const { DASHBOARD_OIDC_CLAIM: claim, DASHBOARD_OIDC_ROLES: rolesByGroup } = values;
  if (issuer === null || clientId === null || rolesByGroup === null) return null;
  return { issuer, clientId, claim, rolesByGroup };
}

/**
 * `environment`: `secrets.encryptionKey`; `local`: a key made in `dataDir` (embedded defaults only, see encryption.ts);
 * `none`: encryption is impossible, since every machine would have a different key.
 */
function encryptionKeySource(key: string | null, isOwnServer: boolean): "environment" | "local" | "none" {
  if (key !== null) return "environment";
  return isOwnServer ? "local" : "none";
}

/** The host as written in a URL. */
const urlHost = (host: string): string => (isIPv6(host) ? `[${host}]` : host.toLowerCase());

function explain(problems: readonly string[]): string {
  const many = problems.length > 1 ? `${problems.length} settings are` : "One setting is";
  return `${many} wrong:\n${problems.map((problem) => `  - ${problem}`).join("\n")}`;
}

function freezeDeep<T extends object>(object: T): T {
  for (const value of Object.values(object)) {
    if (typeof value === "object" && value !== null) freezeDeep(value);
  }
  return Object.freeze(object);
}

/** Variables that must be set together or not at all, with what both mean and what neither means. */
const pairs = [
  ["SVC_BASE_URL", "SVC_API_KEY", "the service", "the sandbox"],
  ["SMTP_URL", "MAIL_FROM", "mail is sent", "it is not"],
  ["DASHBOARD_OIDC_ISSUER", "DASHBOARD_OIDC_CLIENT_ID", "people sign in with the company's account", "they do not"],
  ["DASHBOARD_OIDC_ISSUER", "DASHBOARD_OIDC_CLIENT_SECRET", "people sign in with the company's account", "they do not"],
  ["DASHBOARD_OIDC_ISSUER", "DASHBOARD_OIDC_ROLES", "people sign in with the company's account", "they do not"],
  ["DASHBOARD_PROXY_HEADER", "DASHBOARD_PROXY_SECRET", "a proxy signs people in", "only the dashboard does"],
  ["DASHBOARD_PROXY_HEADER", "DASHBOARD_PROXY_PEERS", "a proxy signs people in", "only the dashboard does"],
  ["REPORTS_CRON", "REPORTS_MAIL_TO", "reports are mailed", "they are not"],
] as const;

/** Contradictions between variables, a sentence or two each. Variables in `bad` are skipped. */
function contradictions(values: Values, bad: ReadonlySet<string>): string[] {
  const texts: string[] = [];
  for (const [one, other, both, none] of pairs) {
    const isSet = [values[one] !== null, values[other] !== null];
    if (isSet[0] === isSet[1] || bad.has(one) || bad.has(other)) continue;
    const [present, absent] = isSet[0] === true ? [one, other] : [other, one];
    texts.push(`${present} is set and ${absent} is not. Set both (${both}) or none (${none}).`);
  }
  if (values.SVC_BASE_URL !== null && values.DATABASE_URL === null && !bad.has("DATABASE_URL")) {
    texts.push(
      "SVC_BASE_URL is set and DATABASE_URL is not. Set DATABASE_URL to your PostgreSQL, or, to try Tallyhook with a " +
        `database on this machine, to the word ${embeddedDatabase}.`,
    );
  }
  if (values.DATABASE_DIRECT_URL !== null && isEmbedded(values.DATABASE_URL) && !bad.has("DATABASE_URL")) {
    texts.push(
      "DATABASE_DIRECT_URL is set and DATABASE_URL names no server. Set DATABASE_URL to the database by way of the " +
        "pooler; without a pooler, set DATABASE_URL alone.",
    );
  }
  if (values.REPORTS_DATABASE_URL !== null && isEmbedded(values.DATABASE_URL)) {
    if (!bad.has("DATABASE_URL")) {
      texts.push(
        "REPORTS_DATABASE_URL is set, and the embedded database has no standby. Set DATABASE_URL to the primary, or " +
          "leave out REPORTS_DATABASE_URL.",
      );
    }
  }
  const isOpen = !isLoopbackHost(urlHost(values.DASHBOARD_HOST));
  if (isOpen && values.PUBLIC_DASHBOARD_URL?.startsWith("https:") !== true) {
    texts.push(
      `DASHBOARD_HOST is ${values.DASHBOARD_HOST}, which other machines can reach, and PUBLIC_DASHBOARD_URL has no ` +
        "https. Put a proxy that speaks https before the dashboard and set PUBLIC_DASHBOARD_URL to its address, or " +
        "leave out DASHBOARD_HOST.",
    );
  }
  if (values.PORT === values.ADMIN_PORT && values.PORT !== 0) {
    texts.push(`PORT and ADMIN_PORT are both ${values.PORT}. Use two ports: only PORT is public.`);
  }
  if (values.REPORTS_CRON !== null && values.SMTP_URL === null && !bad.has("SMTP_URL")) {
    texts.push(
      "REPORTS_CRON is set and SMTP_URL is not. Set SMTP_URL and MAIL_FROM: reports are mailed through the one and " +
        "come from the other.",
    );
  }
  return texts;
}
