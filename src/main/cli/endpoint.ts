import { setTimeout as sleep } from "node:timers/promises";
import Table from "cli-table3";
import { type Command, InvalidArgumentError, Option } from "commander";
import { ServiceRefusedError } from "../../client/service-errors.ts";
import { deleteWebhookEndpoint } from "../../contract/resources/webhook-endpoints.ts";
import {
  findOwnEndpoint,
  forgetEndpoint,
  isSameUrl,
  listEndpoints,
  listKnownEndpoints,
  unknownEndpointError,
} from "../../endpoint/endpoints.ts";
import {
  type EndpointTools,
  type ObtainedSecret,
  finishOpenCall,
  obtainSecret,
  withCallLock,
} from "../../endpoint/obtain-secret.ts";
import { rotateSecret, sendTestEvent } from "../../endpoint/own-endpoint.ts";
import { inspectEndpoint } from "../../endpoint/watch-endpoint.ts";
import { findEvents } from "../../inbox/queries.ts";
import { type Actor, recordAct } from "../../people/audit.ts";
import { ConfigurationError, UnreachableError, UsageError } from "../../platform/errors.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import { withoutControls } from "../../platform/readable-text.ts";
import { endpointToolsOf, recordingAs } from "../endpoint-tools.ts";
import { migratedDatabase } from "../schema.ts";
import { parsePerson, scriptActor } from "./acting-person.ts";
import { wholeNumber } from "./arguments.ts";
import { assertCanAsk, confirm } from "./confirm.ts";
import type { CliContext } from "./context.ts";

const longestGraceHours = 24 * 30;

export function registerEndpoint(program: Command, context: CliContext): void {
  const endpoint = program
    .command("endpoint")
    .description("this deployment's webhook endpoint at the service");

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
    .option("--by <name>", "who does it, for the record", parsePerson)
    .action((options: RegisterOptions) => registerOwnEndpoint(context, options));

  endpoint
    .command("list")
    .description("list the account's endpoints, and what is wrong with this deployment's")
    .option("--json", "print JSON")
    .action((options: ListOptions) => listOwnEndpoints(context, options));

  endpoint
    .command("rotate")
    .description("replace the signing secret, or finish a rotation that was interrupted")
    .argument("[id]", "which endpoint; needed only if there are several")
    .option(
      "--grace-hours <n>",
      "for how many hours the service also signs with the former secret",
      graceHours,
    )
    .option("--by <name>", "who does it, for the record", parsePerson)
    .action((id: string | undefined, options: RotateOptions) =>
      rotateOwnSecret(context, id, options),
    );

  endpoint
    .command("test")
    .description("have the service send a test event, and wait until it is in the inbox")
    .argument("[id]", "which endpoint; needed only if there are several")
    .option("--wait <seconds>", "how many seconds to wait for it", seconds, 15)
    .option("--by <name>", "who does it, for the record", parsePerson)
    .action((id: string | undefined, options: TestOptions) =>
      testOwnEndpoint(context, id, options),
    );

  endpoint
    .command("remove")
    .description("remove an endpoint at the service, after asking; deliveries to it stop at once")
    .argument("<id>", "as shown by list")
    .option("--yes", "remove without asking")
    .option("--by <name>", "who does it, for the record", parsePerson)
    .action((id: string, options: RemoveOptions) => removeOwnEndpoint(context, id, options));
}

function webUrl(text: string): string {
  if (/^https?:\/\//i.test(text) && URL.canParse(text)) return text;
  throw new InvalidArgumentError(
    "Use the whole address, such as https://hooks.example.com/webhooks.",
  );
}

function eventTypes(text: string): string[] {
  const types = text.split(",").map((item) => item.trim());
  if (types.every((type) => type !== "")) return types;
  throw new InvalidArgumentError(
    "Use types separated by commas, such as order.created,order.refunded; * stands for all.",
  );
}

const graceHours = wholeNumber(1, longestGraceHours, "hours");
const seconds = wholeNumber(1, 600, "seconds");

export interface RegisterOptions {
  url?: string;
  events: string[];
  apiVersion?: string;
  description?: string;
  by?: string;
}

/** Registers the endpoint once: completes an interrupted registration, and refuses a second one. */
export async function registerOwnEndpoint(
  context: CliContext,
  options: RegisterOptions,
): Promise<void> {
  const actor = scriptActor(context, options.by);
  const { endpointId, secretId, others } = await withRecordingTools(context, actor, (tools) =>
    withCallLock(tools, async () => {
      const finished = await finishOpenCall(tools);
      const obtained =
        finished?.call.kind === "register" ? finished.obtained : await register(tools, options);
      return { ...obtained, others: await otherEndpoints(tools, obtained.endpointId) };
    }),
  );
  context.stdout.write(
    `${endpointId} is registered; its secret is stored as ${secretId}. Running receivers use it within 5 s.\n` +
      others.map((text) => `${text}\n`).join(""),
  );
}

/** What is said of the account's other endpoints. One that an earlier deployment left gets each event, and answers none. */
async function otherEndpoints(tools: EndpointTools, id: string): Promise<string[]> {
  const known = await listKnownEndpoints(tools.db);
  const { endpoints } = await listEndpoints(tools);
  const others = endpoints.filter(
    (endpoint) => endpoint.id !== id && endpoint.status === "enabled",
  );
  return others.map((other) => {
    const from = known.some((each) => each.id === other.id) ? ", registered from here" : "";
    return (
      `The account has another endpoint, ${other.id} (${withoutControls(other.url)}${from}), which gets each event as ` +
      `well. If nothing serves it: "node src/bin/tallyhook.js endpoint remove ${other.id}".`
    );
  });
}

async function register(tools: EndpointTools, options: RegisterOptions): Promise<ObtainedSecret> {
  const url = requireUrl(options.url ?? tools.url);
  const { endpoints } = await listEndpoints(tools);
  const same = endpoints.find((endpoint) => isSameUrl(endpoint.url, url));
  if (same !== undefined) {
    throw new UsageError(
      `${url} is registered already, as ${same.id} (${same.status}). ` +
        `"node src/bin/tallyhook.js endpoint rotate ${same.id}" gives it ` +
        "a new secret and stores it here.",
    );
  }
  const { events, apiVersion, description } = options;
  const body = {
    url,
    enabled_events: events,
    ...(apiVersion === undefined ? {} : { api_version: apiVersion }),
    ...(description === undefined ? {} : { description }),
  };
  return obtainSecret(tools, { kind: "register", endpointId: null, body }).catch(
    (error: unknown) => {
      throw isBodyRefused(error)
        ? new UsageError(
            `${error.message}. The service refused this endpoint: check --url, --events, --api-version and ` +
              "--description.",
            { cause: error },
          )
        : error;
    },
  );
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

export interface ListOptions {
  json?: boolean;
}

export async function listOwnEndpoints(context: CliContext, { json }: ListOptions): Promise<void> {
  const { endpoints, known, report } = await withEndpointTools(context, async (tools) => ({
    endpoints: (await listEndpoints(tools)).endpoints,
    known: await listKnownEndpoints(tools.db),
    report: await inspectEndpoint(tools, tools.url),
  }));
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
  const problems = report?.problems ?? [];
  if (json === true) {
    context.stdout.write(`${JSON.stringify({ endpoints: rows, problems })}\n`);
    return;
  }
  const table = new Table({
    head: ["id", "url", "status", "events", "version", "rotation until", "secret here"],
    style: { head: [], border: [] },
  });
  for (const row of rows) {
    const secret = row.secret ?? (row.own ? "unknown" : "-");
    const cells = [row.id, row.url, row.status, row.enabled_events.join(", ")];
    const rest = [row.api_version ?? "-", row.rotation_ends_at ?? "-", secret];
    table.push([...cells, ...rest].map(withoutControls));
  }
  context.stdout.write(
    rows.length === 0 ? "The account has no endpoint.\n" : `${table.toString()}\n`,
  );
  for (const { severity, says, remedy } of problems) {
    context.stdout.write(`${severity}: ${withoutControls(says)}\n  → ${remedy}\n`);
  }
}

export interface RotateOptions {
  graceHours?: number;
  by?: string;
}

/** Rotates the secret, or completes an interrupted rotation. One call makes one rotation. */
export async function rotateOwnSecret(
  context: CliContext,
  id: string | undefined,
  { graceHours, by }: RotateOptions,
): Promise<void> {
  const obtained = await withRecordingTools(context, scriptActor(context, by), (tools) =>
    rotateSecret(tools, id, graceHours),
  );
  const { endpointId, secretId, former, formerEndsAt } = obtained;
  const until = formerEndsAt === null ? "" : ` at ${formerEndsAt.toISOString()}`;
  context.stdout.write(
    `${endpointId} has a new secret, stored as ${secretId}. Running receivers use it within 5 s.\n` +
      (former === null
        ? `The former secret was not stored by this command: retire it by hand when it ends${until}.\n`
        : `The former secret, ${former}, is kept and ends${until}.\n`),
  );
}

export interface TestOptions {
  /** In seconds. */
  wait: number;
  by?: string;
}

const everyMs = 250;

/**
 * Has the service send an event and waits for it. Its arrival proves that it was signed with a known secret and stored.
 */
export async function testOwnEndpoint(
  context: CliContext,
  id: string | undefined,
  { wait, by }: TestOptions,
): Promise<void> {
  const actor = scriptActor(context, by);
  const said = await withEndpointTools(context, async (tools) => {
    const endpoint = await findOwnEndpoint(tools, id);
    const subject = { kind: "endpoint", id: endpoint.id };
    await inTransaction(tools.db, (trx) =>
      recordAct(trx, actor, { action: "endpoint.tested", subject }),
    );
    const eventId = await sendTestEvent(tools, endpoint.id);
    if (eventId === null) {
      return (
        `The service accepted the request for ${endpoint.id}, but did not say which event it sends. See whether it ` +
        'arrives: "node src/bin/tallyhook.js events list".\n'
      );
    }
    if (await arrives(tools, eventId, wait)) {
      return `The test event ${eventId} arrived, verified and is stored.\n`;
    }
    throw new UnreachableError(
      `The test event ${eventId} did not arrive within ${wait} s at ${endpoint.url}. Check that the service ` +
        "reaches that address, that the receiver runs, and that it has the secret " +
        '("node src/bin/tallyhook.js secrets list").',
    );
  });
  context.stdout.write(said);
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

export interface RemoveOptions {
  yes?: boolean;
  by?: string;
}

/**
 * Removes an endpoint after a confirmation. One that is already gone at the service is only forgotten here, so that a
 * call after a crash succeeds.
 */
export async function removeOwnEndpoint(
  context: CliContext,
  id: string,
  { yes, by }: RemoveOptions,
): Promise<void> {
  const actor = scriptActor(context, by);
  if (yes !== true) assertCanAsk(context);
  const { secretId, wasThere } = await withEndpointTools(context, async (tools) => {
    const known = (await listKnownEndpoints(tools.db)).find((endpoint) => endpoint.id === id);
    const there = (await listEndpoints(tools)).endpoints.find((endpoint) => endpoint.id === id);
    if (there === undefined && known === undefined) throw unknownEndpointError(id);
    if (there !== undefined && yes !== true) {
      const which = `${id} (${withoutControls(there.url)}, ${withoutControls(there.status)})`;
      await confirm(context, `Remove ${which} at the service, so that no event is sent to it?`);
    }
    const wasThere = await tools.client
      .send(deleteWebhookEndpoint, { params: { id } }, { idempotencyKey: tools.newKey() })
      .then(
        () => true,
        (error: unknown) => {
          const isGone = error instanceof ServiceRefusedError && error.status === 404;
          if (!isGone || known === undefined) throw error;
          return false;
        },
      );
    const secretId = known?.secretId ?? null;
    await inTransaction(tools.db, async (trx) => {
      await forgetEndpoint(trx, id);
      await recordAct(trx, actor, {
        action: "endpoint.removed",
        subject: { kind: "endpoint", id },
        before: { secret: secretId },
      });
    });
    return { secretId, wasThere };
  });
  context.stdout.write(
    wasThere ? `${id} was removed: no event is sent to it.\n` : `${id} was gone already.\n`,
  );
  if (secretId !== null) {
    context.stdout.write(
      `Its secret is kept for deliveries under way: "node src/bin/tallyhook.js secrets retire ${secretId}" ends it.\n`,
    );
  }
}

/** The same, with what they store in the record. */
const withRecordingTools = <T>(
  context: CliContext,
  actor: Actor,
  run: (tools: EndpointTools) => Promise<T>,
): Promise<T> =>
  withEndpointTools(context, (tools) => run({ ...tools, record: recordingAs(actor) }));

/** Opens everything before the first call: without an encryption key, the secret in the answer would be lost. */
export function withEndpointTools<T>(
  context: CliContext,
  run: (tools: EndpointTools) => Promise<T>,
): Promise<T> {
  return context.withRuntime(
    "endpoint",
    async (runtime) => run(await endpointToolsOf(runtime, await migratedDatabase(runtime))),
    {
      logLevel: "warn",
    },
  );
}
