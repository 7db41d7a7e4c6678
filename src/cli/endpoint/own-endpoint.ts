import type { Knex } from "knex";
import { UsageError } from "../../platform/errors.ts";
import { listKnownEndpoints } from "../../reconcile/endpoint/known-endpoints.ts";
import { isSameUrl, listEndpoints } from "../../reconcile/endpoint/list-endpoints.ts";
import type { ServiceClient } from "../../service/client.ts";
import type { WebhookEndpoint } from "../../service/resources/webhook-endpoint.ts";

/** The address that the service sends events to. */
export const webhookUrl = (publicUrl: string | null): string | null =>
  publicUrl === null ? null : `${publicUrl}/webhooks`;

export const noEndpoint = (id: string): UsageError =>
  new UsageError(`The account has no endpoint "${id}". "tallyhook endpoint list" shows them.`);

/**
 * The endpoint that is meant: by its id, else the only one with this deployment's address or made from here. Throws
 * `UsageError` when there is none, or more than one.
 */
export async function findOwnEndpoint(
  tools: { db: Knex; client: Pick<ServiceClient, "listPages">; url: string | null },
  id: string | undefined,
): Promise<WebhookEndpoint> {
  const { endpoints } = await listEndpoints(tools);
  if (id !== undefined) {
    const named = endpoints.find((endpoint) => endpoint.id === id);
    if (named !== undefined) return named;
    throw noEndpoint(id);
  }
  const known = new Set((await listKnownEndpoints(tools.db)).map((each) => each.id));
  const own = endpoints.filter(
    (endpoint) =>
      known.has(endpoint.id) || (tools.url !== null && isSameUrl(endpoint.url, tools.url)),
  );
  const [only, ...others] = own;
  if (only === undefined) {
    throw new UsageError(
      'This deployment has no endpoint. "tallyhook endpoint register" makes one; "list" shows those of the account.',
    );
  }
  if (others.length === 0) return only;
  throw new UsageError(`Say which: ${own.map((endpoint) => endpoint.id).join(", ")}.`);
}
