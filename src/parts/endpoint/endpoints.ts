import type { Knex } from "knex";
import type { ServiceClient } from "../../core/client/service-client.ts";
import {
  type WebhookEndpoint,
  listWebhookEndpoints,
  webhookEndpointSchema,
} from "../../core/contract/resources/webhook-endpoints.ts";
import { ActRefused } from "../../app/people/act.ts";

/** The address that the service sends events to. */
export const webhookUrl = (publicUrl: string | null): string | null =>
  publicUrl === null ? null : `${publicUrl}/webhooks`;

export const unknownEndpoint = (id: string): ActRefused =>
  new ActRefused("unknown", `The account has no endpoint "${id}".`);

/**
 * The endpoints of this deployment among those of its account: those registered from here, and those with its address,
 * from any origin.
 */
export function ownEndpoints(
  all: readonly WebhookEndpoint[],
  { known, url }: { known: readonly Pick<KnownEndpoint, "id">[]; url: string | null },
): WebhookEndpoint[] {
  const ids = new Set(known.map(({ id }) => id));
  return all.filter(({ id, url: its }) => ids.has(id) || (url !== null && isSameUrl(its, url)));
}

/**
 * Finds this deployment's endpoint: by its id, or without one the only one of `ownEndpoints`. Throws `ActRefused` when there is none, or more than one.
 */
export async function findOwnEndpoint(
  tools: { db: Knex; client: Pick<ServiceClient, "listPages">; url: string | null },
  id: string | undefined,
): Promise<WebhookEndpoint> {
  const { endpoints } = await listEndpoints(tools);
  if (id !== undefined) {
    const named = endpoints.find((endpoint) => endpoint.id === id);
    if (named !== undefined) return named;
    throw unknownEndpoint(id);
  }
  const known = await listKnownEndpoints(tools.db);
  const own = ownEndpoints(endpoints, { known, url: tools.url });
  const [only, ...others] = own;
  if (only === undefined) {
    throw new ActRefused("unknown", "This deployment has no endpoint.");
  }
  if (others.length === 0) return only;
  throw new ActRefused(
    "invalid",
    `This deployment has several endpoints. Name one of ${own.map((endpoint) => endpoint.id).join(", ")}.`,
  );
}

export interface ListedEndpoints {
  endpoints: WebhookEndpoint[];
  /** The service's clock at the last page; null without an answer. */
  date: Date | null;
}

/** All webhook endpoints of the account. Skips objects that do not match the contract. Throws a `ServiceError`. */
export async function listEndpoints({
  client,
}: {
  client: Pick<ServiceClient, "listPages">;
}): Promise<ListedEndpoints> {
  const listed: ListedEndpoints = { endpoints: [], date: null };
  for await (const page of client.listPages(listWebhookEndpoints, { query: { limit: "100" } })) {
    listed.date = page.date;
    for (const item of page.items) {
      const parsed = webhookEndpointSchema.safeParse(item);
      if (parsed.success) listed.endpoints.push(parsed.data);
    }
  }
  return listed;
}

/** Whether two addresses are equal; the spelling may differ in case, port and a trailing slash. */
export function isSameUrl(a: string, b: string): boolean {
  const [first, second] = [a, b].map((url) => (URL.canParse(url) ? new URL(url).href.replace(/\/$/, "") : url));
  return first === second;
}

/** An endpoint that was registered here, or whose secret was rotated from here. */
export interface KnownEndpoint {
  id: string;
  url: string;
  /** Id of a secret in the database. */
  secretId: string | null;
  /** Service time. Until then the former secret signs, too. */
  rotationEndsAt: Date | null;
}

interface KnownRow {
  id: string;
  url: string;
  secret_id: string | null;
  rotation_ends_at: Date | null;
}

/** Oldest first. */
export async function listKnownEndpoints(db: Knex): Promise<KnownEndpoint[]> {
  const rows = await db<KnownRow>("reconcile.endpoints").orderBy(["registered_at", "id"]);
  return rows.map((row) => ({
    id: row.id,
    url: row.url,
    secretId: row.secret_id,
    rotationEndsAt: row.rotation_ends_at,
  }));
}

/** Remembers which secret an endpoint signs with. Repeatable; the last call wins. */
export async function rememberEndpoint(db: Knex, endpoint: KnownEndpoint): Promise<void> {
  await db("reconcile.endpoints")
    .insert({
      id: endpoint.id,
      url: endpoint.url,
      secret_id: endpoint.secretId,
      rotation_ends_at: endpoint.rotationEndsAt,
    })
    .onConflict("id")
    .merge(["url", "secret_id", "rotation_ends_at"]);
}

/** Forgets an endpoint. Its secret stays, since webhooks sent before may still arrive. */
export async function forgetEndpoint(db: Knex, id: string): Promise<void> {
  await db("reconcile.endpoints").where({ id }).delete();
}
