import type { Knex } from "knex";
import { ServiceError } from "../../../core/client/service-errors.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { rotating, testing } from "../acts.ts";
import { findLostSecrets, findOpenCall } from "../endpoint-calls.ts";
import { listKnownEndpoints } from "../endpoints.ts";
import type { EndpointTools } from "../obtain-secret.ts";
import { inspectEndpoint } from "../inspect-endpoint.ts";
import { type Act, ActRefused } from "../../../app/people/act.ts";
import { TallyhookError } from "../../../platform/errors.ts";
import { actRoute } from "../../../app/dashboard/act-route.ts";
import type { PageGroup, SummaryCard } from "../../../app/dashboard/page-group.ts";
import { type PageDeps, PageError, type Route } from "../../../app/dashboard/route.ts";
import { type Seen, type SeenEndpoint, renderEndpoint, renderRotation } from "./endpoint-view.ts";

/** The tools of a request: on the dashboard's pool, and with calls that end before a page is late. */
export type OpenTools = (db: Knex) => Promise<ReadingTools>;

interface ReadingTools extends Omit<EndpointTools, "encryption"> {
  /** Null: no key is configured, so that no secret can be stored. */
  encryption: EndpointTools["encryption"] | null;
}

/** This deployment's endpoint at the service: its state, a test, and a new secret for it. */
export const endpointPages = (open: OpenTools): PageGroup => ({
  place: { path: "/endpoint", name: "Endpoint", access: "status:read", area: "Plumbing" },
  routes: [show(open), confirmRotation(open), rotate(open), sendTest(open)],
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
      command: tallyhook("endpoint list"),
    };
  },
});

/** The service's present answer; a text where there is none. */
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
      command: tallyhook(`endpoint rotate ${seen.endpoint.id}`),
    };
  },
});

const rotate = (open: OpenTools): Route =>
  actRoute({
    act: withService(rotating),
    path: "/endpoint/:endpoint/rotate",
    deps: ({ db }) => open(db),
    back: () => "/endpoint",
    done: ({ secretId }) => ({
      to: "/endpoint",
      notice: `The endpoint has a new secret, stored as ${secretId}. Running receivers use it within 5 s.`,
    }),
  });

const sendTest = (open: OpenTools): Route =>
  actRoute({
    act: withService(testing),
    path: "/endpoint/:endpoint/test",
    deps: ({ db }) => open(db),
    back: () => "/endpoint",
    done: ({ eventId }) => ({
      to: eventId === null ? "/events" : `/events?id=${encodeURIComponent(eventId)}`,
      notice:
        "The service was asked to send a test event. Once it is in this list it has arrived, was verified and is stored.",
    }),
  });

/** Turns the service's refusals and silence into pages. */
const withService = <Deps, Input, Done>(act: Act<Deps, Input, Done>): Act<Deps, Input, Done> => ({
  ...act,
  run: (deps, call) =>
    act.run(deps, call).catch((error: unknown) => {
      if (error instanceof ServiceError) throw unreachable(error.message, error);
      if (error instanceof ActRefused || !(error instanceof TallyhookError)) throw error;
      throw new PageError(409, error.message, { cause: error });
    }),
});

/** Reads only stored data: home does not wait for the service. Three statements. */
async function readEndpointSummary({ db }: PageDeps): Promise<SummaryCard> {
  const known = await listKnownEndpoints(db);
  const [lost, openCall] = [await findLostSecrets(db), await findOpenCall(db)];
  const reasons = [
    ...lost.map((id) => `The newest secret of the endpoint ${id} was lost: rotate it again.`),
    ...(openCall === null
      ? []
      : [`A command to ${openCall.kind} the endpoint was begun and not finished: do it again.`]),
  ].map((text) => ({ text, path: "/endpoint", next: "See it" }));
  return {
    title: "Endpoint",
    path: "/endpoint",
    tile: "Webhooks",
    tone: lost.length > 0 ? "bad" : openCall === null ? "good" : "warn",
    headline: known.length === 0 ? "Not registered from here" : `${known.length} registered`,
    facts: [],
    reasons,
  };
}
