import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import type { WebhookEndpoint } from "../../../core/contract/resources/webhook-endpoints.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { findToRemove, registering, removing, rotating, testing } from "../acts.ts";
import { listEndpoints, listKnownEndpoints, unknownEndpoint } from "../endpoints.ts";
import type { EndpointTools } from "../obtain-secret.ts";
import { inspectEndpoint } from "../inspect-endpoint.ts";
import { findEvents } from "../../../core/inbox/queries.ts";
import type { ActCall } from "../../../app/people/act.ts";
import { UnreachableError } from "../../../platform/errors.ts";
import { withoutControls } from "../../../platform/readable-text.ts";
import { endpointToolsOf, readingToolsOf } from "../endpoint-tools.ts";
import { registerAct } from "../../../app/cli/act-command.ts";
import { wholeNumber } from "../../../app/people/fields.ts";
import { type Opened, parserOf, registerReading } from "../../../app/cli/command.ts";
import type { CliContext } from "../../../app/cli/context.ts";
import { type Columns, tableText } from "../../../app/cli/table.ts";

export function registerEndpoint(program: Command, context: CliContext): void {
  const endpoint = program.command("endpoint");

  registerAct(endpoint, context, {
    act: registering,
    name: "register",
    description: "create the endpoint at the service and store its signing secret, encrypted",
    takes: {
      url: { flags: "--url <url>", says: "its address (default: PUBLIC_URL with /webhooks)" },
      events: {
        flags: "--events <list>",
        says: "event types to subscribe to, separated by commas (default: * for all)",
      },
      apiVersion: {
        flags: "--api-version <version>",
        says: "the schema version of its events (default: the newest)",
      },
      description: {
        flags: "--description <text>",
        says: "a description that the service's list shows for it",
      },
    },
    by: forTheRecord,
    deps: openTools,
    say: ({ endpointId, secretId, others }) =>
      `${endpointId} is registered; its secret is stored as ${secretId}. Running receivers use it within 5 s.\n` +
      others.map((other) => `${otherText(other)}\n`).join(""),
    hints: {
      hindered: `"${tallyhook("endpoint rotate ID")}" gives it a new secret and stores it here.`,
      invalid: "Check --url, --events, --api-version and --description.",
    },
  });

  const list = endpoint
    .command("list")
    .description("list the account's endpoints, and what is wrong with this deployment's");
  registerReading(list, context, {
    read: async (opened) => listOwnEndpoints(await openTools(opened)),
    text: ({ endpoints, problems }) =>
      (endpoints.length === 0
        ? "The account has no endpoint.\n"
        : tableText(columns, endpoints, ["version", "rotation until"])) +
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

const seconds = parserOf(wholeNumber(1, 600, "seconds"));

function otherText({ endpoint, isKnown }: { endpoint: WebhookEndpoint; isKnown: boolean }): string {
  const from = isKnown ? ", registered from here" : "";
  return (
    `The account has another endpoint, ${endpoint.id} (${withoutControls(endpoint.url)}${from}), which gets each event ` +
    `as well. If nothing serves it: "${tallyhook(`endpoint remove ${endpoint.id}`)}".`
  );
}

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
