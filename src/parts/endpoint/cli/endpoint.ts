import { setTimeout as sleep } from "node:timers/promises";
import { type Command, InvalidArgumentError, Option } from "commander";
import { ServiceRefusedError } from "../../../core/client/service-errors.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { findToRemove, recordStored, removing, rotating, testing } from "../acts.ts";
import { isSameUrl, listEndpoints, listKnownEndpoints, unknownEndpoint } from "../endpoints.ts";
import {
  type EndpointTools,
  type ObtainedSecret,
  finishOpenCall,
  obtainSecret,
  withCallLock,
} from "../obtain-secret.ts";
import { inspectEndpoint } from "../inspect-endpoint.ts";
import { findEvents } from "../../../core/inbox/queries.ts";
import type { ActCall } from "../../../app/people/act.ts";
import { ConfigurationError, UnreachableError, UsageError } from "../../../platform/errors.ts";
import { withoutControls } from "../../../platform/readable-text.ts";
import { endpointToolsOf, readingToolsOf } from "../endpoint-tools.ts";
import { registerAct } from "../../../app/cli/act-command.ts";
import { parsePerson, scriptActor } from "../../../app/cli/acting-person.ts";
import { wholeNumber } from "../../../app/people/fields.ts";
import { type Opened, parserOf, registerReading, withDatabase } from "../../../app/cli/command.ts";
import type { CliContext } from "../../../app/cli/context.ts";
import { type Columns, tableText } from "../../../app/cli/table.ts";

export function registerEndpoint(program: Command, context: CliContext): void {
  const endpoint = program.command("endpoint").description("this deployment's webhook endpoint at the service");

  endpoint
    .command("register")
    .description("create the endpoint at the service and store its signing secret, encrypted")
    .option("--url <url>", "its address (default: PUBLIC_URL with /webhooks)", webUrl)
    .addOption(
      new Option("--events <list>", "event types to subscribe to, separated by commas")
        .argParser(eventTypes)
        .default(["*"], "* for all"),
    )
    .option("--api-version <version>", "the schema version of its events (default: the newest)")
    .option("--description <text>", "a description that the service's list shows for it")
    .option("--by <name>", "name of the person who does this, for the audit", parsePerson)
    .action((options: RegisterOptions) => registerOwnEndpoint(context, options));

  const list = endpoint
    .command("list")
    .description("list the account's endpoints, and what is wrong with this deployment's");
  registerReading(list, context, {
    read: async (opened) => listOwnEndpoints(await openTools(opened)),
    text: ({ endpoints, problems }) =>
      (endpoints.length === 0 ? "The account has no endpoint.\n" : tableText(columns, endpoints)) +
      problems.map(({ severity, says, remedy }) => `${severity}: ${withoutControls(says)}\n  → ${remedy}\n`).join(""),
    json: (found) => found,
  });

  registerAct(endpoint, context, {
    act: rotating,
    name: "rotate",
    description: "replace the signing secret, or finish a rotation that was interrupted",
    takes: {
      endpoint: which,
      graceHours: {
        flags: "--grace-hours <n>",
        says: "for how many hours the service also signs with the former secret",
      },
    },
    by: forTheRecord,
    deps: openTools,
    say: ({ endpointId, secretId, former, formerEndsAt }) => {
      const until = formerEndsAt === null ? "" : ` at ${formerEndsAt.toISOString()}`;
      return (
        `${endpointId} has a new secret, stored as ${secretId}. Running receivers use it within 5 s.\n` +
        (former === null
          ? `The former secret was not stored by this command: retire it by hand when it ends${until}.\n`
          : `The former secret, ${former}, is kept and ends${until}.\n`)
      );
    },
    hints: unknownHint,
  });

  registerAct<TestTools, { endpoint: string | null }, string>(endpoint, context, {
    act: { ...testing, run: sendAndWait },
    name: "test",
    description: "have the service send a test event, and wait until it is in the inbox",
    takes: { endpoint: which },
    by: forTheRecord,
    deps: async (opened, { wait }) => ({
      ...(await openTools(opened)),
      waitSeconds: Number(wait),
    }),
    say: (said) => said,
    hints: unknownHint,
  }).option("--wait <seconds>", "how many seconds to wait for it", seconds, 15);

  registerAct(endpoint, context, {
    act: removing,
    name: "remove",
    description: "remove an endpoint at the service, after asking; deliveries to it stop",
    takes: { endpoint: { flags: "<id>", says: "as shown by list" } },
    by: forTheRecord,
    deps: openTools,
    async ask(tools, { endpoint: id }) {
      const { known, there } = await findToRemove(tools, id);
      if (there === undefined && known === undefined) throw unknownEndpoint(id);
      const which =
        there === undefined
          ? `${id}, which is gone at the service already`
          : `${id} (${withoutControls(there.url)}, ${withoutControls(there.status)}) at the service`;
      return { question: `Remove ${which}, so that no event is sent to it?`, decidedOn: null };
    },
    say: ({ id, secretId, wasThere }) =>
      (wasThere ? `${id} was removed: no event is sent to it.\n` : `${id} was gone already.\n`) +
      (secretId === null
        ? ""
        : `Its secret is kept for deliveries under way: "${tallyhook(`secrets retire ${secretId}`)}" ends it.\n`),
    hints: unknownHint,
  });
}

const which = { flags: "[id]", says: "which endpoint; needed only if there are several" };

const forTheRecord = { who: "script", says: "name of the person who does this, for the audit" } as const;

/** Everything is opened before the first call: without an encryption key, the secret in the answer would be lost. */
const openTools = ({ runtime, db }: Opened): Promise<EndpointTools> => endpointToolsOf(runtime, db);

const unknownHint = {
  unknown:
    `"${tallyhook("endpoint list")}" shows those of the account, and "${tallyhook("endpoint register")}" creates ` +
    "one.",
};

function webUrl(text: string): string {
  if (/^https?:\/\//i.test(text) && URL.canParse(text)) return text;
  throw new InvalidArgumentError("Use the whole address, such as https://hooks.example.com/webhooks.");
}

function eventTypes(text: string): string[] {
  const types = text.split(",").map((item) => item.trim());
  if (types.every((type) => type !== "")) return types;
  throw new InvalidArgumentError(
    "Use types separated by commas, such as order.created,order.refunded; * stands for all.",
  );
}

const seconds = parserOf(wholeNumber(1, 600, "seconds"));

export interface RegisterOptions {
  url?: string;
  events: string[];
  apiVersion?: string;
  description?: string;
  by?: string;
}

/** Registers the endpoint once: completes an interrupted registration, and refuses a second one. */
export async function registerOwnEndpoint(context: CliContext, options: RegisterOptions): Promise<void> {
  const actor = scriptActor(context, options.by);
  const { endpointId, secretId, others } = await withDatabase(context, "endpoint", async (opened) => {
    const tools = { ...(await openTools(opened)), record: recordStored({ actor }) };
    return withCallLock(tools, async () => {
      const finished = await finishOpenCall(tools);
      const obtained = finished?.call.kind === "register" ? finished.obtained : await register(tools, options);
      return { ...obtained, others: await otherEndpoints(tools, obtained.endpointId) };
    });
  });
  context.stdout.write(
    `${endpointId} is registered; its secret is stored as ${secretId}. Running receivers use it within 5 s.\n` +
      others.map((text) => `${text}\n`).join(""),
  );
}

/**
 * The text about the account's other endpoints. One that an earlier deployment left behind gets each event, and never
 * answers.
 */
async function otherEndpoints(tools: EndpointTools, id: string): Promise<string[]> {
  const known = await listKnownEndpoints(tools.db);
  const { endpoints } = await listEndpoints(tools);
  const others = endpoints.filter((endpoint) => endpoint.id !== id && endpoint.status === "enabled");
  return others.map((other) => {
    const from = known.some((each) => each.id === other.id) ? ", registered from here" : "";
    return (
      `The account has another endpoint, ${other.id} (${withoutControls(other.url)}${from}), which gets each event ` +
      `as well. If nothing serves it: "${tallyhook(`endpoint remove ${other.id}`)}".`
    );
  });
}

async function register(tools: EndpointTools, options: RegisterOptions): Promise<ObtainedSecret> {
  const url = requireUrl(options.url ?? tools.url);
  const { endpoints } = await listEndpoints(tools);
  const same = endpoints.find((endpoint) => isSameUrl(endpoint.url, url));
  if (same !== undefined) {
    throw new UsageError(
      `${url} is registered already, as ${same.id} (${same.status}). "${tallyhook(`endpoint rotate ${same.id}`)}" ` +
        "gives it a new secret and stores it here.",
    );
  }
  const { events, apiVersion, description } = options;
  const body = {
    url,
    enabled_events: events,
    ...(apiVersion === undefined ? {} : { api_version: apiVersion }),
    ...(description === undefined ? {} : { description }),
  };
  return obtainSecret(tools, { kind: "register", endpointId: null, body }).catch((error: unknown) => {
    throw isBodyRefused(error)
      ? new UsageError(
          `${error.message}. The service refused this endpoint: check --url, --events, --api-version and ` +
            "--description.",
          { cause: error },
        )
      : error;
  });
}

function requireUrl(url: string | null): string {
  if (url !== null) return url;
  throw new ConfigurationError(
    "PUBLIC_URL is not set, so the service cannot be told where to send events. Set it, such as " +
      "https://hooks.example.com, or add --url.",
  );
}

/** True if the service refused the request's body, not the key or the timing. */
const isBodyRefused = (error: unknown): error is ServiceRefusedError =>
  error instanceof ServiceRefusedError && (error.status === 400 || error.status === 422);

async function listOwnEndpoints(tools: EndpointTools) {
  const { endpoints } = await listEndpoints(tools);
  const known = await listKnownEndpoints(tools.db);
  const report = await inspectEndpoint(tools, tools.url);
  const secretOf = new Map(known.map(({ id, secretId }) => [id, secretId]));
  const own = new Set(report?.endpoints.map(({ id }) => id));
  const rows = endpoints.map((endpoint) => ({
    id: endpoint.id,
    url: endpoint.url,
    status: endpoint.status,
    enabled_events: endpoint.enabled_events,
    api_version: endpoint.api_version ?? null,
    api_version_sunset: endpoint.api_version_sunset ?? null,
    rotation_ends_at: endpoint.rotation_expires_at ?? null,
    own: own.has(endpoint.id),
    secret: secretOf.get(endpoint.id) ?? null,
  }));
  return { endpoints: rows, problems: report?.problems ?? [] };
}

const columns: Columns<Awaited<ReturnType<typeof listOwnEndpoints>>["endpoints"][number]> = {
  id: ({ id }) => id,
  url: ({ url }) => url,
  status: ({ status }) => status,
  events: (row) => row.enabled_events.join(", "),
  version: (row) => row.api_version,
  "rotation until": (row) => row.rotation_ends_at,
  "secret here": ({ secret, own }) => secret ?? (own ? "unknown" : null),
};

interface TestTools extends ReturnType<typeof readingToolsOf> {
  waitSeconds: number;
}

const everyMs = 250;

/** Its arrival proves that it was signed with a known secret and stored. */
async function sendAndWait(
  { waitSeconds, ...tools }: TestTools,
  call: ActCall<{ endpoint: string | null }>,
): Promise<string> {
  const { endpoint, eventId } = await testing.run(tools, call);
  if (eventId === null) {
    return (
      `The service accepted the request for ${endpoint.id}, but did not say which event it sends. See whether it ` +
      `arrives: "${tallyhook("events list")}".\n`
    );
  }
  if (await arrives(tools, eventId, waitSeconds)) {
    return `The test event ${eventId} arrived, verified and is stored.\n`;
  }
  throw new UnreachableError(
    `The test event ${eventId} did not arrive within ${waitSeconds} s at ${endpoint.url}. Check that the service ` +
      `reaches that address, that the receiver runs, and that it has the secret ("${tallyhook("secrets list")}").`,
  );
}

async function arrives(
  { db, wallClock }: Pick<EndpointTools, "db" | "wallClock">,
  eventId: string,
  waitSeconds: number,
): Promise<boolean> {
  const endMs = wallClock.now().getTime() + waitSeconds * 1_000;
  for (;;) {
    if ((await findEvents(db, eventId)).length > 0) return true;
    if (wallClock.now().getTime() >= endMs) return false;
    await sleep(everyMs);
  }
}
