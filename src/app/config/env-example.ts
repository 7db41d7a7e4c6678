import { tallyhook } from "../../platform/command-line.ts";
import { wrapped } from "../../platform/readable-text.ts";
import type { Setting } from "../../platform/settings.ts";
import { fallbackText } from "./settings-in-force.ts";
import { topics } from "./variables.ts";

const head = `# All settings of Tallyhook; "npm start" and "npm run demo" need none. This file is made from the code:
# ${tallyhook("settings --env > .env.example")}
#
# With Compose: copy to .env and fill in SVC_BASE_URL. Secrets are not here but in files; the head of
# docker-compose.yml says how to make them. A line that is commented out shows the default, or an example where
# there is none. With systemd: docs/deployment.md.
`;

const outside = `# ==== Not passed on by docker-compose.yml. Read by commands that run in the folder of this file, and by processes that get
# it as their environment; to reach a container, add them to its environment in an override file.
`;

const secretsHead = `# ==== Secrets: each from a file of its own, or by its name without _FILE. Compose names these files itself.
`;

interface Line {
  value: string;
  /** The meaning of the setting here, where it differs. */
  about?: string;
}

/** Settings that docker-compose.yml takes from .env, and that are more there, or less, than to a process. */
const inCompose: Readonly<Record<string, Line>> = {
  REDIS_URL: {
    value: "redis://redis:6379",
    about:
      "A Redis other than the one that comes with Compose: one server, a cluster, or the Sentinels of a master " +
      '(docs/operations.md, "A Redis of several servers").',
  },
  PORT: {
    value: "3000",
    about: "The port of this machine on which the receiver takes webhooks. Put TLS in front of it.",
  },
  DASHBOARD_PORT: {
    value: "3002",
    about: "The port of this machine, on loopback, on which the dashboard answers.",
  },
  DASHBOARD_PROXIES: {
    value: "1",
    about: "How many proxies in front of the dashboard add to X-Forwarded-For (docs/settings.md).",
  },
  RECONCILE_IDENTITIES: { value: "chargeback_match=observe" },
  TALLYHOOK_HANDLERS: {
    value: "/app/handlers",
    about:
      "Your handlers (docs/handlers.md) outside of src/handlers/: docker-compose.yml says how to mount them there.",
  },
  SMTP_URL: {
    value: "smtp://mail.example.com",
    about:
      "The mail server, set together with MAIL_FROM. A password is better kept in a file: docker-compose.yml says how.",
  },
};

/** Variables that only Compose and its files read. */
const ofComposeAlone = [
  { name: "SECRETS_DIR", value: "./secrets", about: "Where the files with the secrets are." },
  {
    name: "COMPOSE_FILE",
    value: "docker-compose.yml:docker-compose.alerts.yml",
    about: "Alerts by Slack, mail, PagerDuty or webhooks: the head of docker-compose.alerts.yml says what they need.",
  },
  {
    name: "ALERT_SETTINGS",
    value: "./alerts.jsonc",
    about: "The settings of alerts: a copy of alerts.example.jsonc.",
  },
  {
    name: "FORWARD_SETTINGS",
    value: "./forward.jsonc",
    about:
      "Changes sent to other programs: a copy of forward.example.jsonc. The head of docker-compose.forward.yml " +
      "says how.",
  },
  {
    name: "PROMETHEUS_PORT",
    value: "9090",
    about:
      "The port of this machine, on loopback, of the Prometheus of docker-compose.monitoring.yml (docs/monitoring.md).",
  },
  {
    name: "GRAFANA_PORT",
    value: "3006",
    about: "The same for its Grafana.",
  },
];

/** No secrets, and not in docker-compose.yml, or there with a value that fits its containers. */
const outsideCompose: ReadonlySet<string> = new Set([
  "HOST",
  "ADMIN_HOST",
  "ADMIN_PORT",
  "DASHBOARD_HOST",
  // In comments there, as far as they are not for a proxy of one's own.
  "DASHBOARD_OIDC_ISSUER",
  "DASHBOARD_OIDC_CLIENT_ID",
  "DASHBOARD_OIDC_CLAIM",
  "DASHBOARD_OIDC_ROLES",
  "DASHBOARD_PROXY_HEADER",
  "DASHBOARD_PROXY_PEERS",
  "TALLYHOOK_DATA_DIR",
  // docker-compose.alerts.yml and docker-compose.forward.yml have them, with a value that fits the container.
  "ALERT_SETTINGS_FILE",
  "FORWARD_SETTINGS_FILE",
  // For operators with a collector of traces (docs/tracing.md).
  "OTEL_EXPORTER_OTLP_ENDPOINT",
  "OTEL_SERVICE_NAME",
  "OTEL_RESOURCE_ATTRIBUTES",
  "OTEL_TRACES_SAMPLER",
  "OTEL_TRACES_SAMPLER_ARG",
  "OTEL_SDK_DISABLED",
  "SANDBOX_PORT",
]);

/** The one that Compose does not start without. */
const required = "SVC_BASE_URL";

type Part = "compose" | "outside" | "secrets";

function partOf(name: string, { isSecret }: Setting<unknown>): Part {
  if (outsideCompose.has(name)) return "outside";
  return isSecret && inCompose[name] === undefined ? "secrets" : "compose";
}

/** The text of .env.example: every setting, in parts by how it reaches a process, and by topic. */
export function envExample(): string {
  const compose = ofComposeAlone.map(({ name, value, about }) => entry(`#${name}=${value}`, about));
  return [
    head,
    ...partLines("compose"),
    "# ---- Compose itself\n",
    ...compose,
    outside,
    ...partLines("outside"),
    secretsHead,
    ...partLines("secrets"),
  ].join("\n");
}

function partLines(part: Part): string[] {
  return topics.flatMap(({ title, settings }) => {
    const here = Object.entries(settings).filter(([name, each]) => partOf(name, each) === part);
    if (here.length === 0) return [];
    return [`# ---- ${title}\n`, ...here.map(([name, each]) => settingEntry(name, each, part))];
  });
}

function settingEntry(name: string, setting: Setting<unknown>, part: Part): string {
  const { about, should, example, fallback } = setting;
  if (part === "secrets") {
    return entry(`#${name}_FILE=/etc/tallyhook/secrets/${name.toLowerCase()}`, `${about} It holds ${should}.`);
  }
  const here = inCompose[name];
  const preset = here?.value ?? fallbackText(fallback);
  const text = `${here?.about ?? about} It should be ${should}.`;
  if (name === required) return entry(`${name}=`, text);
  return entry(`#${name}=${preset ?? example}`, preset === null ? `${text} An example:` : text);
}

const entry = (line: string, about: string): string =>
  `${wrapped(`# ${about}`, { width: 120, indent: "# " })}\n${line}\n`;
