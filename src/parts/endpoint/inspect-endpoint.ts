import type { Knex } from "knex";
import type { ServiceClient } from "../../core/client/service-client.ts";
import { type WebhookEndpoint, coversEvent } from "../../core/contract/resources/webhook-endpoints.ts";
import { tallyhook } from "../../platform/command-line.ts";
import type { EndpointProblem } from "../../app/answers.ts";
import { type EndpointCall, findLostSecrets, findOpenCall } from "./endpoint-calls.ts";
import { type KnownEndpoint, isSameUrl, listEndpoints, listKnownEndpoints, ownEndpoints } from "./endpoints.ts";

export interface WatchDependencies {
  db: Knex;
  client: Pick<ServiceClient, "listPages">;
}

export interface EndpointReport {
  /** Those of `ownEndpoints`. */
  endpoints: WebhookEndpoint[];
  problems: EndpointProblem[];
  /** The service's clock. */
  date: Date;
}

/**
 * Checks this deployment's endpoint at the service. Returns null when neither its address is known nor an endpoint was
 * registered from here. Read-only. Throws a `ServiceError`.
 */
export async function inspectEndpoint(
  { db, client }: WatchDependencies,
  url: string | null,
): Promise<EndpointReport | null> {
  const known = await listKnownEndpoints(db);
  const address = url ?? known.at(-1)?.url;
  if (address === undefined) return null;
  const { endpoints: all, date } = await listEndpoints({ client });
  const endpoints = ownEndpoints(all, { known, url: address });
  if (date === null) return null;
  const [openCall, lostSecrets] = [await findOpenCall(db), await findLostSecrets(db)];
  const facts = { endpoints, url: address, known, openCall, lostSecrets, now: date };
  return { endpoints, problems: checkEndpoints(facts), date };
}

export interface EndpointFacts {
  /** Those of `ownEndpoints`. */
  endpoints: readonly WebhookEndpoint[];
  /** The address that it serves: by its settings, or the one that was registered last. */
  url: string;
  known: readonly KnownEndpoint[];
  openCall: EndpointCall | null;
  /** Ids of endpoints whose newest secret is lost. */
  lostSecrets: readonly string[];
  /** The service's clock. */
  now: Date;
}

/** The events that build the mirror. Without one of them, only the nightly run corrects the mirror. */
const neededEvents = [
  "order.created",
  "order.succeeded",
  "order.failed",
  "order.refunded",
  "customer.created",
  "subscription.created",
  "subscription.charged",
  "subscription.updated",
  "subscription.canceled",
] as const;

const warnDaysBeforeSunset = 60;
const dayMs = 86_400_000;
/** A call takes seconds: an older one was interrupted. */
const unfinishedAfterMs = 5 * 60_000;

/** Problems that keep events from arriving now or will later. */
export function checkEndpoints(facts: EndpointFacts): EndpointProblem[] {
  const { endpoints, url, openCall, now } = facts;
  const problems: EndpointProblem[] = [];
  if (openCall !== null && now.getTime() - openCall.createdAt.getTime() > unfinishedAfterMs) {
    problems.push({
      code: "call_unfinished",
      severity: "high",
      subject: openCall.endpointId ?? url,
      says: `the command to ${openCall.kind} was begun at ${openCall.createdAt.toISOString()} and not finished`,
      remedy: `run "${tallyhook(`endpoint ${openCall.kind}`)}" again: it continues where it stopped`,
    });
  }
  const served = endpoints.filter((endpoint) => isSameUrl(endpoint.url, url));
  const enabled = served.filter(({ status }) => status === "enabled");
  if (served.length === 0) {
    problems.push({
      code: "not_registered",
      severity: "critical",
      subject: url,
      says: `no endpoint of the account has the address ${url}: no event arrives`,
      remedy: `run "${tallyhook("endpoint register")}"`,
    });
  } else if (enabled.length > 1) {
    problems.push({
      code: "registered_twice",
      severity: "warning",
      subject: url,
      says: `${enabled.length} endpoints have the address ${url}: each event arrives ${enabled.length} times`,
      remedy: `keep one: "${tallyhook("endpoint remove ID")}"`,
    });
  }
  for (const { id, url: other, status } of endpoints) {
    if (isSameUrl(other, url) || status !== "enabled") continue;
    problems.push({
      code: "other_address",
      severity: "warning",
      subject: id,
      says: `the endpoint ${id} was registered from here and has the address ${other}, while this deployment's is ${url}`,
      remedy:
        "set PUBLIC_URL to the address that a receiver serves, and keep its endpoint alone: " +
        `"${tallyhook("endpoint remove ID")}" removes one`,
    });
  }
  return [...problems, ...served.flatMap((endpoint) => checkOne(endpoint, facts))];
}

function checkOne(endpoint: WebhookEndpoint, facts: EndpointFacts): EndpointProblem[] {
  const { id } = endpoint;
  const problems: EndpointProblem[] = [];
  const add = (problem: Omit<EndpointProblem, "subject">) => problems.push({ subject: id, ...problem });
  if (endpoint.status !== "enabled") {
    add({
      code: "disabled",
      severity: "critical",
      says: `the endpoint ${id} is ${endpoint.status}: no event arrives through it`,
      remedy: "enable it at the service; then reconcile, since what was missed does not come again",
    });
  }
  const missing = neededEvents.filter((type) => !coversEvent(endpoint.enabled_events, type));
  if (missing.length > 0) {
    add({
      code: "not_subscribed",
      severity: "high",
      says: `the endpoint ${id} does not receive ${missing.join(", ")}`,
      remedy: "add these events to its enabled_events at the service",
    });
  }
  return [...problems, ...checkVersion(endpoint, facts.now), ...checkSecret(endpoint, facts)];
}

function checkVersion(endpoint: WebhookEndpoint, now: Date): EndpointProblem[] {
  const { id, api_version: version, api_version_sunset: sunset } = endpoint;
  const sunsetMs = Date.parse(sunset ?? "");
  const isSunset = sunsetMs <= now.getTime();
  const isNear = sunsetMs - now.getTime() < warnDaysBeforeSunset * dayMs;
  if (!isNear && endpoint.api_version_deprecated !== true) return [];
  const end = Number.isNaN(sunsetMs) ? "" : `, which ${isSunset ? "ended" : "ends"} on ${sunset}`;
  return [
    {
      code: "version_sunset",
      severity: isSunset ? "critical" : isNear ? "high" : "warning",
      subject: id,
      says: `the endpoint ${id} is pinned to the version ${version ?? "(unknown)"}${end}`,
      remedy: "pin it to a newer api_version at the service",
    },
  ];
}

function checkSecret(
  { id, has_pending_rotation: isPending, rotation_expires_at: expiresAt }: WebhookEndpoint,
  { known, lostSecrets }: EndpointFacts,
): EndpointProblem[] {
  if (lostSecrets.includes(id)) {
    return [
      {
        code: "secret_lost",
        severity: "critical",
        subject: id,
        says: `the newest secret of ${id} was lost: its deliveries ${expiresAt == null ? "no longer verify" : `verify until ${expiresAt}`}`,
        remedy: `run "${tallyhook(`endpoint rotate ${id}`)}"${expiresAt == null ? "" : " as soon as the service allows another rotation"}`,
      },
    ];
  }
  const ours = known.find((each) => each.id === id)?.rotationEndsAt ?? null;
  const isOurs = ours !== null && ours.getTime() === Date.parse(expiresAt ?? "");
  if (isPending !== true || isOurs) return [];
  return [
    {
      code: "unknown_rotation",
      severity: "high",
      subject: id,
      says: `the secret of ${id} was rotated elsewhere: the former one verifies until ${expiresAt ?? "an unknown time"}`,
      remedy: `add the new one ("${tallyhook("secrets add")}"), unless it is already stored`,
    },
  ];
}
