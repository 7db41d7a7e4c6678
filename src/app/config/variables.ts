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
  mailServerUrl,
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
import { groupRoles, redisUrl, serviceBaseUrl } from "./own-setting-kinds.ts";
import {
  type Environment,
  type ReadSettings,
  type Setting,
  optional,
  secret,
  setting,
} from "../../platform/settings.ts";
import { signatureSchemeNames } from "../../core/contract/signature/signature-scheme.ts";
import { defaultEnvelopePaths } from "../../core/contract/event-envelope.ts";
import { leastKeepDays } from "../../core/inbox/partitions.ts";
import { envelopePlaces } from "./envelope-places.ts";

/**
 * The value of DATABASE_URL for the embedded server. If no service is configured, an unset DATABASE_URL means the same.
 */
export const embeddedDatabase = "embedded";

const databaseUrl = postgresUrl("postgres://user:password@host:5432/database (special characters percent-encoded)");

const database = {
  DATABASE_URL: secret(
    orWord(embeddedDatabase, databaseUrl),
    'Where everything is kept: one host (docs/operations.md, "Failover of PostgreSQL"), encoded in UTF8. The word ' +
      "embedded, or no value while SVC_BASE_URL is not set, means the PostgreSQL in TALLYHOOK_DATA_DIR.",
  ),
  DATABASE_DIRECT_URL: secret(
    databaseUrl,
    "The address of the same database without the pooler, where DATABASE_URL goes through one that pools by " +
      'transaction (docs/operations.md, "Behind a pooler"). Without it, everything goes through DATABASE_URL.',
  ),
  REPORTS_DATABASE_URL: secret(
    postgresUrl("postgres://user:password@standby:5432/database"),
    'A physical standby of DATABASE_URL to read reports from (docs/operations.md, "A standby for reports"). Without ' +
      "it, reports are read from DATABASE_URL.",
  ),
  REPORTS_MAX_LAG_SECONDS: setting(
    integer(1, 86_400, "seconds"),
    300,
    "A report of now is refused while the standby is further behind than this.",
  ),
  DATABASE_SILENCE_SECONDS: setting(
    integer(10, 86_400, "seconds"),
    300,
    "A worker closes a database connection on which a statement has sent nothing for this long, as after a " +
      "failover that left the connection open. It must be longer than the longest statement; lower it where " +
      "failovers are more frequent than large reports.",
  ),
  REDIS_URL: secret(
    redisUrl,
    'The queue: one server, a cluster, or the Sentinels of a master (docs/operations.md, "A Redis of several ' +
      'servers"), with maxmemory-policy noeviction. Without it, the queue is in PostgreSQL.',
  ),
};

const service = {
  SVC_BASE_URL: optional(
    serviceBaseUrl,
    "https://api.example.com",
    "The commerce service. Set it together with SVC_API_KEY; without both, the sandbox is the service.",
  ),
  SVC_API_KEY: secret(headerToken(8), "The secret API key of the service."),
  SVC_WEBHOOK_SECRETS: secret(
    secretList(16),
    "The signing secrets of the webhook endpoint. A receiver needs one, here or kept in the database (secrets add, " +
      'endpoint register). "none", also in a file: the database has them.',
  ),
  SVC_SIGNATURE_SCHEME: setting(oneOf(signatureSchemeNames), "svc", "How the service signs webhooks."),
  SVC_SIGNATURE_TOLERANCE_SECONDS: setting(
    integer(1, 86_400, "seconds"),
    300,
    "How far the time in a signature may be off, in either direction.",
  ),
  SVC_EVENT_PLACES: setting(
    envelopePlaces,
    defaultEnvelopePaths,
    "Where the parts of an event are in its body. Name only the parts that differ; receivers and workers need the " +
      "same value.",
  ),
};

const receiver = {
  HOST: setting(host, "0.0.0.0", "Where the receiver listens."),
  PORT: setting(port, 3000, "The receiver's port, the only public one. Put TLS in front of it."),
  PUBLIC_URL: optional(
    baseUrl("https://hooks.example.com"),
    "https://hooks.example.com",
    "The address at which the service reaches the receiver, for endpoint register and for the nightly check of the " +
      "endpoint.",
  ),
  WEBHOOK_MAX_BYTES: setting(
    integer(1_024, 67_108_864, "bytes"),
    1_048_576,
    "Larger bodies get 413. Past 64 MiB (or four times this) of bodies in progress, further ones get 503 unread.",
  ),
  WEBHOOK_MAX_CONNECTIONS: setting(
    integer(1, 65_535, "connections"),
    1_024,
    "Past this number, idle connections are closed in favour of new ones.",
  ),
};

const encryption = {
  TALLYHOOK_ENCRYPTION_KEY: secret(
    hexKey,
    "The key that encrypts signing secrets and second factors in the database; the same on every machine. Keep a " +
      "copy apart from the database's backups. The embedded database gets one in TALLYHOOK_DATA_DIR; any other " +
      "database can hold no secret without it.",
  ),
  TALLYHOOK_PREVIOUS_ENCRYPTION_KEYS: secret(
    hexKeyList,
    'Older keys, to read what they encrypted (docs/operations.md, "Changing the encryption key").',
  ),
};

const dashboard = {
  DASHBOARD_HOST: setting(
    host,
    "127.0.0.1",
    "Where the dashboard listens: beyond loopback only if PUBLIC_DASHBOARD_URL has https.",
  ),
  DASHBOARD_PORT: setting(port, 3002, "The dashboard's port."),
  PUBLIC_DASHBOARD_URL: optional(
    baseUrl("https://tallyhook.example.com"),
    "https://tallyhook.example.com",
    "Where people reach the dashboard: the https address of the proxy in front of it. The dashboard answers only " +
      "under that name and those of this machine. Alerts link to it.",
  ),
  DASHBOARD_PROXIES: setting(
    integer(0, 10, "proxies"),
    0,
    "How many proxies in front of the dashboard add to X-Forwarded-For. The client address that follows from it " +
      "throttles sign-ins and is recorded with acts; an IPv6 address counts with its whole /64.",
  ),
  DASHBOARD_OIDC_ISSUER: optional(
    baseUrl("https://login.example.com"),
    "https://login.example.com",
    "People sign in with the company's account, by OpenID Connect. Set it together with DASHBOARD_OIDC_CLIENT_ID, " +
      "DASHBOARD_OIDC_CLIENT_SECRET and DASHBOARD_OIDC_ROLES.",
  ),
  DASHBOARD_OIDC_CLIENT_ID: optional(
    printable,
    "tallyhook",
    "The client id of this dashboard at the company's provider.",
  ),
  DASHBOARD_OIDC_CLIENT_SECRET: secret(printable, "The client secret of this dashboard at the company's provider."),
  DASHBOARD_OIDC_CLAIM: setting(printable, "groups", "The claim that names a person's groups."),
  DASHBOARD_OIDC_ROLES: optional(
    groupRoles,
    "billing-team=finance+viewer,oncall=operator",
    "The roles of each group (docs/dashboard.md).",
  ),
  DASHBOARD_PROXY_HEADER: optional(
    headerName,
    "X-Forwarded-Email",
    "The header in which a proxy that signs people in names them by e-mail address. Set it together with " +
      "DASHBOARD_PROXY_SECRET and DASHBOARD_PROXY_PEERS.",
  ),
  DASHBOARD_PROXY_SECRET: secret(headerToken(16), "What that proxy sends in X-Tallyhook-Proxy-Secret."),
  DASHBOARD_PROXY_PEERS: optional(
    addressList,
    "10.0.0.5,10.0.0.6",
    "The addresses of that proxy; the header is ignored from any other.",
  ),
};

const reconciliation = {
  TALLYHOOK_TIME_ZONE: setting(
    timeZone,
    "UTC",
    "The time zone of days in reports, of schedules, and of times in alerts. After a change run reconcile --full: " +
      "daily-control compares days as they were cut when they were read.",
  ),
  // In nearly every zone, daylight saving neither skips nor repeats this hour.
  RECONCILE_CRON: setting(cron, "30 3 * * *", "When the nightly run starts, in TALLYHOOK_TIME_ZONE."),
  RECONCILE_MODE: setting(
    oneOf(["heal", "report"]),
    "heal",
    "With report, findings are recorded and the mirror is not changed.",
  ),
  RECONCILE_GRACE_SECONDS: optional(
    integer(0, 86_400, "seconds"),
    "600",
    'Differences younger than this are read again after it; it is also the time between two answers "unknown" that ' +
      "mean a deleted customer. Without it 600, and 5 for the sandbox.",
  ),
  RECONCILE_IDENTITIES: setting(
    choices(["enforce", "observe", "off"], "chargeback_match=enforce,double_order=off"),
    {},
    'Modes of accounting invariants that should differ from their defaults (docs/operations.md, "Accounting ' +
      'invariants").',
  ),
  CARD_NETWORK_REGION: setting(
    oneOf(["global", "lac", "mena"]),
    "global",
    "The region of the acquirer, for the card networks' thresholds (network-monitor and its alert): lac is Latin " +
      "America and the Caribbean, mena the Middle East and North Africa.",
  ),
};

const storage = {
  EVENTS_KEEP_DAYS: setting(
    integer(leastKeepDays, 36_500, "days"),
    400,
    "Events are removed this many days after they arrived; the mirror and its history stay (docs/operations.md, " +
      '"Keeping the inbox small").',
  ),
  CHANGES_KEEP_DAYS: setting(
    integer(1, 36_500, "days"),
    30,
    "Changes leave the feed this many days after they were recorded, if every consumer has read them (docs/feed.md, " +
      '"What is kept").',
  ),
  TALLYHOOK_DATA_DIR: setting(
    path,
    ".data",
    "The folder of the embedded database, its key and the state of the sandbox. Its name may have no double quote, " +
      "dollar sign or backquote in it.",
  ),
};

const reports = {
  REPORTS_CRON: optional(
    cron,
    "0 7 * * *",
    "When reports are mailed, in TALLYHOOK_TIME_ZONE (docs/finance.md). Set it together with REPORTS_MAIL_TO, " +
      "SMTP_URL and MAIL_FROM; without it none is mailed.",
  ),
  REPORTS_MAIL_TO: optional(mailAddressList, "finance@example.com", "The addresses that reports are mailed to."),
  REPORTS_MAIL: setting(
    namedItems(["day", "month"], "daily-control,exceptions,journal:month"),
    [
      { name: "daily-control", word: null },
      { name: "exceptions", word: null },
      { name: "past-due-aging", word: null },
      { name: "month-end", word: "month" },
    ],
    "Which reports are mailed: a name for the day before, name:month for the month before.",
  ),
  REPORTS_MAIL_FORMAT: setting(
    subsetOf(["html", "xlsx", "csv"]),
    ["html"],
    "The formats that reports are attached in.",
  ),
  REPORTS_CLOSE_FOUR_EYES: setting(
    oneOf(["dashboard", "always", "off"]),
    "dashboard",
    "Whether closing a month takes a second person besides the one who prepared it: on the dashboard, while the " +
      "command close needs one person and warns; always, for the command as well, whose names are not checked; or " +
      'off, for neither (docs/finance.md, "Four eyes").',
  ),
};

const messages = {
  ALERT_SETTINGS_FILE: optional(
    file,
    "/etc/tallyhook/alerts.jsonc",
    'The settings of alerts, a copy of alerts.example.jsonc (docs/operations.md, "Alert channels"). Without it, ' +
      "every rule is on and alerts go only to the log.",
  ),
  RUNBOOKS_URL: optional(
    baseUrl("https://github.com/example/tallyhook/blob/main/docs/runbooks.md"),
    "https://github.com/example/tallyhook/blob/main/docs/runbooks.md",
    "Where people read docs/runbooks.md, such as its page in your fork: every alert links to its rule's section. " +
      "Without it, alerts name the path.",
  ),
  SMTP_URL: secret(
    mailServerUrl,
    "The mail server for reports and alerts; smtp:// uses STARTTLS, except to this machine itself. Set it together " +
      "with MAIL_FROM; without both, no mail is sent.",
  ),
  MAIL_FROM: optional(mailAddress, "tallyhook@example.com", "The sender of mails."),
  FORWARD_SETTINGS_FILE: optional(
    file,
    "/etc/tallyhook/forward.jsonc",
    "The settings of what is sent to other programs, a copy of forward.example.jsonc (docs/forwarding.md). Without " +
      "it, nothing is sent.",
  ),
  TALLYHOOK_HANDLERS: optional(
    path,
    "/srv/handlers",
    "More of your handlers (docs/handlers.md), in addition to those of src/handlers/.",
  ),
};

const observation = {
  ADMIN_HOST: setting(host, "127.0.0.1", "Where a process answers /healthz and /metrics."),
  ADMIN_PORT: optional(
    port,
    "3001",
    "Where a process answers /healthz and /metrics. Without it each kind of process has its own, so that all can " +
      "run on one machine: worker and start 3001, receiver 3003, dashboard 3004, handlers run 3005. It must differ " +
      "from PORT.",
  ),
  METRICS_TOKEN: secret(
    headerToken(16),
    "The bearer token that gives access to /metrics (docs/metrics.md). Without it, requests from the same machine " +
      "have access.",
  ),
  LOG_LEVEL: setting(oneOf(logLevels), "info", "What is logged: this and what is more severe."),
  LOG_FORMAT: setting(
    oneOf(["auto", "json"]),
    "auto",
    "How it is logged. auto: on a terminal a line for people for each event, change, alert and run, elsewhere JSON; " +
      "json: JSON everywhere.",
  ),
  // By OpenTelemetry's own names. The SDK reads all others from the environment itself (docs/tracing.md).
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(
    urlWithScheme(["http", "https"], "http://127.0.0.1:4318"),
    "http://127.0.0.1:4318",
    "Where traces are sent (docs/tracing.md). Without it there are no spans.",
  ),
  OTEL_EXPORTER_OTLP_HEADERS: secret(headerPairs, "Headers of the requests that send traces."),
  OTEL_SERVICE_NAME: optional(
    oneLineOfText,
    "tallyhook",
    "The service name of a process in traces. Without it tallyhook-receiver, tallyhook-worker and so on.",
  ),
  OTEL_RESOURCE_ATTRIBUTES: optional(
    oneLineOfText,
    "deployment.environment.name=production",
    "Further resource attributes of the traces.",
  ),
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
    "Which traces are sent; by default all.",
  ),
  OTEL_TRACES_SAMPLER_ARG: optional(
    fraction,
    "0.1",
    "The share of the traces that a traceidratio sampler sends. Without it, all.",
  ),
  OTEL_SDK_DISABLED: setting(oneOf(["true", "false"]), "false", "With true, no trace is sent, whatever else is set."),
};

const sandbox = {
  SANDBOX_PORT: setting(port, 4010, "The sandbox's port, on loopback."),
};

/** Every environment variable that Tallyhook reads, except the secrets of alert channels and of destinations. */
export const settings = {
  ...database,
  ...service,
  ...receiver,
  ...encryption,
  ...dashboard,
  ...reconciliation,
  ...storage,
  ...reports,
  ...messages,
  ...observation,
  ...sandbox,
} as const;

/** The topics of the settings page: every setting has one. */
export const topics: readonly {
  title: string;
  settings: Readonly<Record<string, Setting<unknown>>>;
}[] = [
  { title: "Database and queue", settings: database },
  { title: "The service", settings: service },
  { title: "Receiver", settings: receiver },
  { title: "Encryption", settings: encryption },
  { title: "Dashboard, and how people sign in", settings: dashboard },
  { title: "Days, and reconciliation", settings: reconciliation },
  { title: "What is kept", settings: storage },
  { title: "Reports", settings: reports },
  { title: "Alerts, mail, and your own code", settings: messages },
  { title: "Health, logs and traces", settings: observation },
  { title: "Sandbox", settings: sandbox },
];

export type Values = ReadSettings<typeof settings>["values"];

/** Variables with these prefixes are meant for Tallyhook. */
export const prefixes = ["SVC_", "TALLYHOOK_", "REPORTS_", "RECONCILE_", "DASHBOARD_"];

/** Prefixes of variables with secrets, whose names the user chooses. */
export const secretPrefixes = { alerts: "ALERT_", forward: "FORWARD_" } as const;

/** Other names of a setting in a `.env` file. */
export const alsoCalled: Readonly<Record<string, string>> = {
  METRICS_HOST: "ADMIN_HOST",
  METRICS_PORT: "ADMIN_PORT",
  RECEIVER_HOST: "HOST",
  RECEIVER_PORT: "PORT",
  WEBHOOK_PORT: "PORT",
  ALERTS_CONFIG: "ALERT_SETTINGS_FILE",
  FORWARDS_CONFIG: "FORWARD_SETTINGS_FILE",
};

/** Names in a `.env` file that are read by other programs, by Compose's files, or under names that people choose. */
export const ofOthers =
  /^(?:PG|NODE_|NPM_|COMPOSE_|DOCKER_|POSTGRES_|REDIS_|OTEL_|PROMETHEUS_|GRAFANA_|SECRETS_DIR$|ALERT_|FORWARD_|TZ$|LC_|LANG$|HTTPS?_PROXY$|NO_PROXY$)/;

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
  const about = "A secret of an alert channel or of a destination, by the name that its settings give it.";
  return Object.fromEntries(names.map((name) => [name, secret(printable, about)]));
}
