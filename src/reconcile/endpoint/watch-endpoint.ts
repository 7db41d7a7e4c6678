import type { Knex } from "knex";
import type { ServiceClient } from "../../service/client.ts";
import type { WebhookEndpoint } from "../../service/resources/webhook-endpoint.ts";
import { healUnseenFindings, recordFindings } from "../findings.ts";
import { findHiddenSecrets, findOpenCall } from "./endpoint-calls.ts";
import { judgeEndpoints } from "./judge-endpoint.ts";
import type { EndpointProblem } from "./judge-endpoint.ts";
import { listKnownEndpoints } from "./known-endpoints.ts";
import { isSameUrl, listEndpoints } from "./list-endpoints.ts";

export interface WatchDependencies {
  db: Knex;
  client: Pick<ServiceClient, "listPages">;
}

export interface EndpointReport {
  /** Those with this deployment's address. */
  endpoints: WebhookEndpoint[];
  problems: EndpointProblem[];
  /** The service's clock. */
  date: Date;
}

/**
 * Looks whether this deployment's endpoint at the service does what it should. Null when neither its address is known
 * nor was one registered from here. Only reads. Throws a `ServiceError`.
 */
export async function inspectEndpoint(
  { db, client }: WatchDependencies,
  url: string | null,
): Promise<EndpointReport | null> {
  const known = await listKnownEndpoints(db);
  const address = url ?? known.at(-1)?.url;
  if (address === undefined) return null;
  const { endpoints: all, date } = await listEndpoints({ client });
  const endpoints = all.filter((endpoint) => isSameUrl(endpoint.url, address));
  if (date === null) return null;
  const [openCall, hiddenSecrets] = [await findOpenCall(db), await findHiddenSecrets(db)];
  const facts = { endpoints, url: address, known, openCall, hiddenSecrets, now: date };
  return { endpoints, problems: judgeEndpoints(facts), date };
}

/**
 * The nightly look at the endpoint: what is wrong with it becomes findings of the class `endpoint`, and what no longer
 * is heals. Idempotent; opens no transaction. Throws a `ServiceError`.
 */
export async function watchEndpoint(
  dependencies: WatchDependencies,
  { url, run }: { url: string | null; run: number | null },
): Promise<EndpointReport | null> {
  const report = await inspectEndpoint(dependencies, url);
  if (report === null) return null;
  const sighting = { run, seenAt: report.date };
  await recordFindings(
    dependencies.db,
    sighting,
    report.problems.map(({ code, severity, subject, says, remedy }) => ({
      key: `endpoint:${code}:${subject}`,
      class: "endpoint",
      identity: null,
      severity,
      resource: "webhook_endpoint",
      objectId: subject,
      // What it kept from us, reconciliation reads: it says nothing of the time before it was seen.
      objectAt: report.date.toISOString(),
      differences: [],
      amountAtRiskMinor: null,
      currency: null,
      cause: null,
      evidence: { says, remedy },
    })),
  );
  await healUnseenFindings(dependencies.db, sighting, { class: "endpoint" });
  return report;
}
