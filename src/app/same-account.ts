import type { Knex } from "knex";
import { getAccount } from "../core/contract/resources/account.ts";
import type { Resource } from "../core/mirror/snapshot.ts";
import { mirrorResources, readEndpointOf } from "../core/mirror/resources.ts";
import { type ServiceClient, isObjectId } from "../core/client/service-client.ts";
import { ServiceAnswerError, ServiceRefusedError, ServiceUnavailableError } from "../core/client/service-errors.ts";
import { inTransaction } from "../platform/postgres/transactions.ts";
import { isMirrorEmpty } from "../core/mirror/look-up.ts";

interface AccountDeps {
  db: Knex;
  client: Pick<ServiceClient, "get">;
}

interface KnownObject {
  resource: Resource;
  id: string;
}

/**
 * Returns why the key may not belong to the account that filled the mirror, with a remedy; null where nothing
 * contradicts it. A reason forbids every write.
 *
 * The proof is the account's id, where the service shows one and an earlier check stored it. Else it is the objects
 * that the mirror has held longest: orders, transactions and subscriptions are never deleted. One that the service
 * returns proves the account; if none is returned, one that is unknown (404) disproves it; any other answer proves
 * nothing. The id is stored once an object has proved it. An empty mirror belongs to no account: the id stored for it
 * is deleted. Throws the client's errors about the key, those that ask for a later call, and the signal's reason.
 */
export async function accountProblem({ db, client }: AccountDeps, signal?: AbortSignal): Promise<string | null> {
  if (await isMirrorEmpty(db)) {
    await inTransaction(db, (trx) => trx("reconcile.account").delete());
    return null;
  }
  const shown = await readAccountId(client, signal);
  const kept = await db("reconcile.account").first<{ id: string } | undefined>("id");
  if (shown !== null && kept !== undefined) {
    return shown === kept.id ? null : foreign(`it is ${shown}, and the mirror is of ${kept.id}`);
  }
  const known = await longestKnown(db);
  // A mirror of customers alone cannot be checked: all of them may have been deleted since.
  if (known.length === 0) return null;
  const { isShown, missing, unanswered } = await ask(client, known, signal);
  if (isShown) {
    if (shown !== null) await keepAccount(db, shown);
    return null;
  }
  if (missing !== null) {
    return foreign(
      `it shows none of the objects that the mirror has held longest, and does not know ${nameOf(missing)}`,
    );
  }
  return unanswered === null ? null : unproved(unanswered);
}

async function keepAccount(db: Knex, id: string): Promise<void> {
  await inTransaction(db, (trx) => trx("reconcile.account").insert({ id }).onConflict().ignore());
}

const foreign = (evidence: string): string =>
  `The service shows another account: ${evidence}. Nothing was read into the mirror. Set SVC_API_KEY and SVC_BASE_URL to ` +
  "the account that this mirror is of, or DATABASE_URL to an empty database for the other one, then run again.";

const unproved = ({ object, why }: Unanswered): string =>
  "It is not known whether the key belongs to the mirror's account: the service shows none of the objects that the " +
  `mirror has held longest, and does not say that they are unknown (${nameOf(object)}: ${why}). Nothing was read ` +
  "into the mirror. Run again once the service answers; if it refuses these reads, give the key in SVC_API_KEY the " +
  "permission to read orders, transactions or subscriptions.";

const nameOf = ({ resource, id }: KnownObject): string => `${resource} ${id}`;

async function readAccountId(client: AccountDeps["client"], signal: AbortSignal | undefined): Promise<string | null> {
  try {
    const { body } = await client.get(getAccount, {}, walk(signal));
    // The documented interface has no account id; a service may still show one.
    const id = idOf(body);
    return typeof id === "string" && id !== "" ? id.slice(0, 255) : null;
  } catch (error) {
    // A key without this permission can still prove its account by the objects.
    if (provesNothing(error) && !asksToWait(error)) return null;
    throw error;
  }
}

const idOf = (body: object | null): unknown => (body !== null && "id" in body ? body.id : undefined);

interface Unanswered {
  object: KnownObject;
  why: string;
}

interface Answers {
  /** The service returned one of the objects. */
  isShown: boolean;
  /** The first object that the service does not know. */
  missing: KnownObject | null;
  /** The first object for which the answer proves nothing. */
  unanswered: Unanswered | null;
}

/** A service that still fails after the client's repeats is not asked for every object. */
const maxOutages = 2;

/** Asks for one object after the other until the service returns one. */
async function ask(
  client: AccountDeps["client"],
  known: readonly KnownObject[],
  signal: AbortSignal | undefined,
): Promise<Answers> {
  const answers: Answers = { isShown: false, missing: null, unanswered: null };
  let outages = 0;
  for (const object of known) {
    const { endpoint } = readEndpointOf(object.resource);
    try {
      const { status, body } = await client.get(endpoint, { params: { id: object.id } }, walk(signal));
      if (status === 404) answers.missing ??= object;
      else if (idOf(body) === object.id) return { ...answers, isShown: true };
      else answers.unanswered ??= { object, why: `answered ${status} without the object` };
    } catch (error) {
      if (!provesNothing(error) || asksToWait(error)) throw error;
      answers.unanswered ??= { object, why: error.message };
      if (error instanceof ServiceUnavailableError && ++outages === maxOutages) break;
    }
  }
  return answers;
}

const walk = (signal: AbortSignal | undefined) => ({
  priority: "walk" as const,
  ...(signal === undefined ? {} : { signal }),
});

const perResource = 2;

async function longestKnown(db: Knex): Promise<KnownObject[]> {
  const known: KnownObject[] = [];
  // An object that can be deleted proves nothing by its absence.
  for (const { name: resource, table } of mirrorResources.filter(({ absence }) => absence === undefined)) {
    const ids = await db(`mirror.${table}`)
      .whereNot("version", "")
      .whereNotNull("created_at")
      .orderBy([{ column: "created_at" }, { column: "id" }])
      .limit(perResource)
      .pluck<string[]>("id");
    known.push(...ids.filter(isObjectId).map((id) => ({ resource, id })));
  }
  return known;
}

/** The error is about this one request: the key may still be usable for others. */
const provesNothing = (error: unknown): error is ServiceAnswerError | ServiceUnavailableError | ServiceRefusedError =>
  error instanceof ServiceAnswerError ||
  error instanceof ServiceUnavailableError ||
  (error instanceof ServiceRefusedError && error.status !== 401);

const asksToWait = (error: unknown): boolean => error instanceof ServiceUnavailableError && error.retryAfterMs !== null;
