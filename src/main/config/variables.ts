import { logLevels } from "../../platform/log.ts";
import {
  addressList,
  baseUrl,
  choices,
  cron,
  file,
  fraction,
  headerName,
  headerPairs,
  headerToken,
  hexKey,
  hexKeyList,
  host,
  integer,
  mailAddress,
  mailAddressList,
  namedItems,
  oneLineOfText,
  oneOf,
  orWord,
  path,
  port,
  postgresUrl,
  printable,
  secretList,
  subsetOf,
  timeZone,
  urlWithScheme,
} from "../../platform/setting-kinds.ts";
import { redisUrl } from "./redis-url.ts";
import { serviceBaseUrl } from "./service-base-url.ts";
import {
  type Environment,
  type ReadSettings,
  type Setting,
  optional,
  secret,
  setting,
} from "../../platform/settings.ts";
import { signatureSchemeNames } from "../../contract/signature/signature-scheme.ts";
import { defaultEnvelopePaths } from "../../contract/event-envelope.ts";
import { groupRoles } from "./group-roles.ts";
import { leastKeepDays } from "../../inbox/partitions.ts";
import { envelopePlaces } from "./envelope-places.ts";

/**
 * The value of DATABASE_URL for the embedded server. If no service is configured, an unset DATABASE_URL means the same.
 */
export const embeddedDatabase = "embedded";

const databaseUrl = postgresUrl(
  "postgres://user:password@host:5432/database (special characters percent-encoded)",
);

/** Every environment variable that Tallyhook reads, except the secrets of alert channels and of destinations. */
export const settings = {
  DATABASE_URL: secret(orWord(embeddedDatabase, databaseUrl)),
  DATABASE_DIRECT_URL: secret(databaseUrl),
  REPORTS_DATABASE_URL: secret(postgresUrl("postgres://user:password@standby:5432/database")),
  REPORTS_MAX_LAG_SECONDS: setting(integer(1, 86_400, "seconds"), 300),
  REDIS_URL: secret(redisUrl),
  SVC_BASE_URL: optional(serviceBaseUrl),
  SVC_API_KEY: secret(headerToken(8)),
  SVC_WEBHOOK_SECRETS: secret(secretList(16)),
  SVC_SIGNATURE_SCHEME: setting(oneOf(signatureSchemeNames), "svc"),
  SVC_SIGNATURE_TOLERANCE_SECONDS: setting(integer(1, 86_400, "seconds"), 300),
  SVC_EVENT_PLACES: setting(envelopePlaces, defaultEnvelopePaths),
  WEBHOOK_MAX_BYTES: setting(integer(1_024, 67_108_864, "bytes"), 1_048_576),
  WEBHOOK_MAX_CONNECTIONS: setting(integer(1, 65_535, "connections"), 1_024),
  HOST: setting(host, "0.0.0.0"),
  PORT: setting(port, 3000),
  ADMIN_HOST: setting(host, "127.0.0.1"),
  ADMIN_PORT: setting(port, 3001),
  METRICS_TOKEN: secret(headerToken(16)),
  SANDBOX_PORT: setting(port, 4010),
  DASHBOARD_HOST: setting(host, "127.0.0.1"),
  DASHBOARD_PORT: setting(port, 3002),
  PUBLIC_DASHBOARD_URL: optional(baseUrl("https://tallyhook.example.com")),
  DASHBOARD_OIDC_ISSUER: optional(baseUrl("https://login.example.com")),
  DASHBOARD_OIDC_CLIENT_ID: optional(printable),
  DASHBOARD_OIDC_CLIENT_SECRET: secret(printable),
  DASHBOARD_OIDC_CLAIM: setting(printable, "groups"),
  DASHBOARD_OIDC_ROLES: optional(groupRoles),
  DASHBOARD_PROXY_HEADER: optional(headerName),
  DASHBOARD_PROXY_SECRET: secret(headerToken(16)),
  DASHBOARD_PROXY_PEERS: optional(addressList),
  DASHBOARD_PROXIES: setting(integer(0, 10, "proxies"), 0),
  PUBLIC_URL: optional(baseUrl("https://hooks.example.com")),
  RUNBOOKS_URL: optional(
    baseUrl("https://github.com/example/tallyhook/blob/main/docs/runbooks.md"),
  ),
  TALLYHOOK_DATA_DIR: setting(path, ".data"),
  TALLYHOOK_HANDLERS: optional(path),
  TALLYHOOK_ENCRYPTION_KEY: secret(hexKey),
  TALLYHOOK_PREVIOUS_ENCRYPTION_KEYS: secret(hexKeyList),
  TALLYHOOK_TIME_ZONE: setting(timeZone, "UTC"),
  CARD_NETWORK_REGION: setting(oneOf(["global", "lac", "mena"]), "global"),
  // In nearly every zone, daylight saving neither skips nor repeats this hour.
  RECONCILE_CRON: setting(cron, "30 3 * * *"),
  DATABASE_SILENCE_SECONDS: setting(integer(10, 86_400, "seconds"), 300),
  EVENTS_KEEP_DAYS: setting(integer(leastKeepDays, 36_500, "days"), 400),
  CHANGES_KEEP_DAYS: setting(integer(1, 36_500, "days"), 30),
  RECONCILE_GRACE_SECONDS: optional(integer(0, 86_400, "seconds")),
  RECONCILE_MODE: setting(oneOf(["heal", "report"]), "heal"),
  RECONCILE_IDENTITIES: setting(
    choices(["enforce", "observe", "off"], "chargeback_match=enforce,double_order=off"),
    {},
  ),
  REPORTS_CRON: optional(cron),
  REPORTS_MAIL_TO: optional(mailAddressList),
  REPORTS_MAIL: setting(namedItems(["day", "month"], "daily-control,exceptions,journal:month"), [
    { name: "daily-control", word: null },
    { name: "exceptions", word: null },
    { name: "past-due-aging", word: null },
    { name: "month-end", word: "month" },
  ]),
  REPORTS_MAIL_FORMAT: setting(subsetOf(["html", "xlsx", "csv"]), ["html"]),
  REPORTS_CLOSE_FOUR_EYES: setting(oneOf(["dashboard", "always", "off"]), "dashboard"),
  SMTP_URL: secret(
    urlWithScheme(
      ["smtp", "smtps"],
      "smtps://user:password@mail.example.com (special characters percent-encoded)",
    ),
  ),
  MAIL_FROM: optional(mailAddress),
  ALERT_SETTINGS_FILE: optional(file),
  FORWARD_SETTINGS_FILE: optional(file),
  LOG_LEVEL: setting(oneOf(logLevels), "info"),
  // By OpenTelemetry's own names. The SDK reads what is not here from the environment by itself (docs/tracing.md).
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(urlWithScheme(["http", "https"], "http://127.0.0.1:4318")),
  OTEL_EXPORTER_OTLP_HEADERS: secret(headerPairs),
  OTEL_SERVICE_NAME: optional(oneLineOfText),
  OTEL_RESOURCE_ATTRIBUTES: optional(oneLineOfText),
  OTEL_TRACES_SAMPLER: setting(
    oneOf([
      "always_on",
      "always_off",
      "traceidratio",
      "parentbased_always_on",
      "parentbased_always_off",
      "parentbased_traceidratio",
    ]),
    "parentbased_always_on",
  ),
  OTEL_TRACES_SAMPLER_ARG: optional(fraction),
  OTEL_SDK_DISABLED: setting(oneOf(["true", "false"]), "false"),
} as const;

export type Values = ReadSettings<typeof settings>["values"];

/** Variables with these prefixes are meant for Tallyhook. */
export const prefixes = ["SVC_", "TALLYHOOK_", "REPORTS_", "RECONCILE_", "DASHBOARD_"];

/** Of variables with secrets by any name that the user chose. */
export const secretPrefixes = { alerts: "ALERT_", forward: "FORWARD_" } as const;

/** The variables with secrets that begin with a prefix: any name, but no misspelled setting. */
export function prefixedSecrets(
  prefix: string,
  env: Environment,
  misspelled: ReadonlySet<string>,
): Record<string, Setting<string | null>> {
  const names = Object.keys(env)
    .filter((name) => name.startsWith(prefix))
    .filter((name) => !Object.hasOwn(settings, name) && !misspelled.has(name))
    .map((name) => name.replace(/_FILE$/, ""));
  return Object.fromEntries(names.map((name) => [name, secret(printable)]));
}
