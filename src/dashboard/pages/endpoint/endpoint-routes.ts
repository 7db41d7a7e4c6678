import type { Knex } from "knex";
import { ServiceError } from "../../../client/service-errors.ts";
import { findLostSecrets, findOpenCall } from "../../../endpoint/endpoint-calls.ts";
import { listKnownEndpoints } from "../../../endpoint/endpoints.ts";
import type { EndpointTools } from "../../../endpoint/obtain-secret.ts";
import { rotateSecret, sendTestEvent } from "../../../endpoint/own-endpoint.ts";
import { inspectEndpoint } from "../../../endpoint/watch-endpoint.ts";
import { type Actor, recordAct } from "../../../people/audit.ts";
import { TallyhookError } from "../../../platform/errors.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { outdated, versionOf } from "../../parts/decided-on.ts";
import type { PageGroup, SummaryCard } from "../../page-group.ts";
import { type PageDeps, PageError, type Route } from "../../route.ts";
import {
  type Seen,
  type SeenEndpoint,
  renderEndpoint,
  renderRotation,
  versionOfEndpoint,
} from "./endpoint-view.ts";

/** The tools of a request: on the dashboard's pool, and with calls that end before a page is late. */
export type OpenTools = (db: Knex) => Promise<ReadingTools>;

/** Records what is stored, as an act of this person. */
export type RecordingAs = (actor: Actor) => NonNullable<EndpointTools["record"]>;

interface ReadingTools extends Omit<EndpointTools, "encryption"> {
  /** Null: no key is configured, so that no secret can be stored. */
  encryption: EndpointTools["encryption"] | null;
}

const mostGraceHours = 24 * 30;

/** This deployment's endpoint at the service: its state, a test, and a new secret for it. */
export const endpointPages = (open: OpenTools, recordingAs: RecordingAs): PageGroup => ({
  place: { path: "/endpoint", name: "Endpoint", access: "status:read" },
  routes: [show(open), confirmRotation(open), rotate(open, recordingAs), sendTest(open)],
  summary: { access: "status:read", read: readEndpointSummary },
});

const show = (open: OpenTools): Route => ({
  method: "GET",
  path: "/endpoint",
  access: "status:read",
  async answer({ db, timeZone }, { visitor }) {
    const tools = await open(db);
    return {
      kind: "page",
      title: "Endpoint",
      body: renderEndpoint({
        url: tools.url,
        openCall: await findOpenCall(db),
        seen: await readSeen(tools),
        mayWrite: visitor.permissions.has("endpoint:write"),
        timeZone,
      }),
      command: "node src/bin/tallyhook.js endpoint list",
    };
  },
});

/** What the service says now; a text where it does not answer. */
async function readSeen(tools: ReadingTools): Promise<Seen | string> {
  try {
    const report = await inspectEndpoint(tools, tools.url);
    if (report === null) return { endpoints: [], problems: [] };
    const known = new Map((await listKnownEndpoints(tools.db)).map((each) => [each.id, each]));
    const endpoints = report.endpoints.map((endpoint) => ({
      endpoint,
      secretId: known.get(endpoint.id)?.secretId ?? null,
    }));
    return { endpoints, problems: report.problems };
  } catch (error) {
    if (error instanceof ServiceError) return error.message;
    throw error;
  }
}

/** Throws `PageError` where the service does not answer, or knows no such endpoint of ours. */
async function requireSeen(tools: ReadingTools, id: string): Promise<SeenEndpoint> {
  const seen = await readSeen(tools);
  if (typeof seen === "string") throw unreachable(seen);
  const found = seen.endpoints.find(({ endpoint }) => endpoint.id === id);
  if (found === undefined) {
    throw new PageError(
      404,
      "This deployment has no such endpoint at the service. Look at the page of the endpoint again.",
    );
  }
  return found;
}

const unreachable = (said: string, cause?: unknown): PageError =>
  new PageError(502, `The service did not do this: ${said}. Try again when it answers.`, { cause });

const confirmRotation = (open: OpenTools): Route => ({
  method: "GET",
  path: "/endpoint/:id/rotate/confirm",
  access: "endpoint:write",
  async answer({ db, timeZone }, { params }) {
    const tools = await open(db);
    const seen = await requireSeen(tools, params["id"] ?? "");
    const openCall = await findOpenCall(db);
    return {
      kind: "page",
      title: "Rotate the signing secret?",
      body: renderRotation({ seen, openCall, timeZone }),
      command: `node src/bin/tallyhook.js endpoint rotate ${seen.endpoint.id}`,
    };
  },
});

const rotate = (open: OpenTools, recordingAs: RecordingAs): Route => ({
  method: "POST",
  path: "/endpoint/:id/rotate",
  access: "endpoint:write",
  async answer({ db }, { params, form, actor }) {
    const tools = await open(db);
    const seen = await requireSeen(tools, params["id"] ?? "");
    if (versionOf(form) !== versionOfEndpoint(seen, await findOpenCall(db))) {
      throw outdated(`The endpoint ${seen.endpoint.id}`);
    }
    const hours = form.get("grace-hours")?.trim() ?? "";
    const graceHours = Number(hours);
    if (
      hours !== "" &&
      !(/^\d{1,3}$/.test(hours) && graceHours >= 1 && graceHours <= mostGraceHours)
    ) {
      throw new PageError(
        400,
        `The grace period is a whole number of hours, 1 to ${mostGraceHours}.`,
      );
    }
    const { encryption } = tools;
    if (encryption === null) {
      throw new PageError(
        409,
        "TALLYHOOK_ENCRYPTION_KEY is not set, so the new secret could not be stored. Nothing was done. Set it first.",
      );
    }
    const recorded: EndpointTools = { ...tools, encryption, record: recordingAs(actor) };
    const { secretId } = await serviceCall(() =>
      rotateSecret(recorded, seen.endpoint.id, hours === "" ? undefined : graceHours),
    );
    return {
      kind: "redirect",
      to: "/endpoint",
      notice: `The endpoint has a new secret, stored as ${secretId}. Running receivers use it within 5 s.`,
    };
  },
});

const sendTest = (open: OpenTools): Route => ({
  method: "POST",
  path: "/endpoint/:id/test",
  access: "endpoint:write",
  async answer({ db }, { params, form, actor }) {
    const tools = await open(db);
    const seen = await requireSeen(tools, params["id"] ?? "");
    if (versionOf(form) !== versionOfEndpoint(seen, await findOpenCall(db))) {
      throw outdated(`The endpoint ${seen.endpoint.id}`);
    }
    const subject = { kind: "endpoint", id: seen.endpoint.id };
    await inTransaction(db, (trx) => recordAct(trx, actor, { action: "endpoint.tested", subject }));
    const eventId = await serviceCall(() => sendTestEvent(tools, seen.endpoint.id));
    return {
      kind: "redirect",
      to: eventId === null ? "/events" : `/events?id=${encodeURIComponent(eventId)}`,
      notice:
        "The service was asked to send a test event. Once it is in this list it has arrived, was verified and is stored.",
    };
  },
});

/** Runs what calls the service. What it or the service refuses is said on a page. */
async function serviceCall<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof ServiceError) throw unreachable(error.message, error);
    if (error instanceof TallyhookError) throw new PageError(409, error.message, { cause: error });
    throw error;
  }
}

/** Of what is stored here: home does not wait for the service. Three statements. */
async function readEndpointSummary({ db }: PageDeps): Promise<SummaryCard> {
  const known = await listKnownEndpoints(db);
  const [lost, openCall] = [await findLostSecrets(db), await findOpenCall(db)];
  const reasons = [
    ...lost.map((id) => `The newest secret of the endpoint ${id} was lost: rotate it again.`),
    ...(openCall === null
      ? []
      : [`A command to ${openCall.kind} the endpoint was begun and not finished: do it again.`]),
  ];
  return {
    title: "Endpoint",
    path: "/endpoint",
    tone: lost.length > 0 ? "bad" : openCall === null ? "good" : "warn",
    headline: known.length === 0 ? "Not registered from here" : `${known.length} registered`,
    facts: known.slice(-2).map(({ id }) => ({ name: "Id", value: id })),
    reasons,
  };
}
