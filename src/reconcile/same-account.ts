import type { Knex } from "knex";
import type { Resource } from "../mirror/observation.ts";
import { readPlaces } from "../mirror/read-places.ts";
import type { ServiceClient } from "../service/client.ts";
import { isObjectId, objectPath } from "../service/http/request-path.ts";
import {
  ServiceAnswerError,
  ServiceRefusedError,
  ServiceUnavailableError,
} from "../service/service-errors.ts";
import { mirrorTableOf } from "./mirror-tables.ts";

interface AccountDeps {
  db: Knex;
  client: Pick<ServiceClient, "get">;
}

interface KnownObject {
  resource: Resource;
  id: string;
}

/**
 * Whether the service still shows the account that the mirror was filled from: by the account's id where the service
 * shows one, which is kept the first time, else by the objects that the mirror has held longest. Orders, transactions
 * and subscriptions are never deleted, so that one that is known proves the account, and none that is known disproves
 * it. An empty mirror belongs to nobody yet. Gives back
 * why the key does not belong to it, and what to do; null where it does. Throws the client's errors about the key, and the reason of the signal.
 */
export async function foreignAccount(
  { db, client }: AccountDeps,
  signal: AbortSignal,
): Promise<string | null> {
  const shown = await readAccountId(client, signal);
  const kept = await db("reconcile.account").first<{ id: string } | undefined>("id");
  if (shown !== null && kept !== undefined) {
    return shown === kept.id ? null : foreign(`it is ${shown}, and the mirror is of ${kept.id}`);
  }
  const first = await firstMissing({ db, client }, signal);
  if (first !== null) {
    return foreign(
      `it knows none of the objects that the mirror has held longest, such as ${first.resource} ${first.id}`,
    );
  }
  if (shown !== null) await db("reconcile.account").insert({ id: shown }).onConflict().ignore();
  return null;
}

const foreign = (evidence: string): string =>
  `The service shows another account: ${evidence}. Nothing was read into the mirror. Set SVC_API_KEY and SVC_BASE_URL to ` +
  "the account that this mirror is of, or DATABASE_URL to an empty database for the other one, then run again.";

async function readAccountId(
  client: AccountDeps["client"],
  signal: AbortSignal,
): Promise<string | null> {
  try {
    const { body } = await client.get("/account", {}, { lane: "walk", signal });
    const id = typeof body === "object" && body !== null ? (body as { id?: unknown }).id : null;
    return typeof id === "string" && id !== "" ? id.slice(0, 255) : null;
  } catch (error) {
    // A key without this permission shows its account by its objects.
    if (saysNothing(error)) return null;
    throw error;
  }
}

/** Asks for one after the other until one is there. The first of them where none is, else null. */
async function firstMissing(
  { db, client }: AccountDeps,
  signal: AbortSignal,
): Promise<KnownObject | null> {
  const known = await longestKnown(db);
  for (const object of known) {
    if (!(await isUnknown(client, object, signal))) return null;
  }
  return known[0] ?? null;
}

const perResource = 2;

async function longestKnown(db: Knex): Promise<KnownObject[]> {
  const known: KnownObject[] = [];
  for (const resource of ["order", "transaction", "subscription"] as const) {
    const ids = await db(`mirror.${mirrorTableOf[resource]}`)
      .whereNot("version", "")
      .whereNotNull("created_at")
      .orderBy([{ column: "created_at" }, { column: "id" }])
      .limit(perResource)
      .pluck<string[]>("id");
    known.push(...ids.filter(isObjectId).map((id) => ({ resource, id })));
  }
  return known;
}

async function isUnknown(
  client: AccountDeps["client"],
  { resource, id }: KnownObject,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const { path } = readPlaces[resource];
    const { status } = await client.get(objectPath(path, id), {}, { lane: "walk", signal });
    return status === 404;
  } catch (error) {
    if (saysNothing(error)) return false;
    throw error;
  }
}

/** The answer to one request, and no sign that the key cannot be used. The walk finds out whether the service can. */
const saysNothing = (error: unknown): boolean =>
  error instanceof ServiceAnswerError ||
  error instanceof ServiceUnavailableError ||
  (error instanceof ServiceRefusedError && error.status !== 401);
