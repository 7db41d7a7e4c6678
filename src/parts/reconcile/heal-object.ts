import { createHash } from "node:crypto";
import type { Knex } from "knex";
import { believedDate } from "../../core/client/believed-dates.ts";
import { type ServiceClient, isObjectId } from "../../core/client/service-client.ts";
import { canonicalTimestamp } from "../../core/contract/timestamp.ts";
import { type WireObject, isObject } from "../../core/contract/wire-types.ts";
import { compareStates } from "../../core/mirror/compare/compare-states.ts";
import { decode, readEndpointOf } from "../../core/mirror/resources.ts";
import { type GroupState, type ObjectKey, snapshotFrom } from "../../core/mirror/snapshot.ts";
import { isPlausibleAt } from "../../core/mirror/version.ts";
import { newStates } from "../../core/mirror/write/apply.ts";
import {
  type Decision,
  type RowBeforeHeal,
  overwriteObject,
  readRowBeforeHeal,
} from "../../core/mirror/write/overwrite.ts";
import type { Clock } from "../../platform/clock.ts";
import { ActRefused } from "../../app/people/act.ts";
import { ConfigurationError } from "../../platform/errors.ts";
import type { Log } from "../../platform/log.ts";
import { errorCode, refusesRow } from "../../platform/postgres/errors.ts";
import { inTransaction, retryOnConflict } from "../../platform/postgres/transactions.ts";
import type { Random } from "../../platform/random.ts";
import { differencesOf, wholeDifferencesOf } from "./compare/differences.ts";
import { boundText } from "./coverage/slice.ts";
import { driftKey } from "./findings/drift-findings.ts";
import { type Difference, driftClasses, healFindingsOf } from "./findings/findings.ts";
import { findingsOfObject, isHealedByHand } from "./findings/search-findings.ts";
import type { RunListener } from "../../app/run-listener.ts";
import { accountProblem } from "../../app/same-account.ts";

/** A heal's writes, for a person to decide on. */
export interface HealProposal {
  object: ObjectKey;
  /** The service's `Date`, fixed form. */
  observedAt: string;
  states: GroupState[];
  /** Differences between service and mirror, without the values of personal fields. */
  differences: Difference[];
  /** The same with the values of personal fields: for persons who may see them, never to be stored. */
  wholeDifferences: Difference[];
  /** The service dates a change in the future: the answer's `Date` replaces that time in `states`. */
  isRedated: boolean;
  seen: RowBeforeHeal;
}

export interface ProposalDeps {
  db: Knex;
  client: Pick<ServiceClient, "get">;
  clock: Clock;
}

/** `why`: in whole sentences. `isShowable` is false where no read can show the object. */
export type HealRefusal = { isShowable: boolean; why: string };

/**
 * Reads an object from the service and reports what writing it would change. Writes no object. Throws
 * `ConfigurationError` unless the key is known to belong to the mirror's account, `ActRefused` where the service cannot
 * be asked for the object or does not know it (unknown), or shows it in a form that cannot be stored (hindered), and the
 * client's errors.
 */
export async function proposeHeal(
  deps: ProposalDeps,
  object: ObjectKey,
  { signal }: { signal?: AbortSignal } = {},
): Promise<HealProposal> {
  // Before the first call of the service.
  if (isObjectId(object.id)) await assertOwnAccount(deps, signal);
  const read = await readProposal(deps, object, signal);
  if ("why" in read) throw new ActRefused(read.isShowable ? "hindered" : "unknown", read.why);
  return read;
}

/** Throws `ConfigurationError` unless the key is known to belong to the mirror's account. */
export async function assertOwnAccount(
  { db, client }: Pick<ProposalDeps, "db" | "client">,
  signal?: AbortSignal,
): Promise<void> {
  const problem = await accountProblem({ db, client }, signal);
  if (problem !== null) throw new ConfigurationError(problem);
}

/** `proposeHeal` without the question of the account. Throws the client's errors. */
export async function readProposal(
  { db, client, clock }: ProposalDeps,
  object: ObjectKey,
  signal?: AbortSignal,
): Promise<HealProposal | HealRefusal> {
  const { resource, id } = object;
  const name = `${resource} ${id}`;
  if (!isObjectId(id)) {
    return {
      isShowable: false,
      why: `"${id}" cannot be an object's id: no URL can be made of it.`,
    };
  }
  const { endpoint, query } = readEndpointOf(resource);
  const answer = await client.get(endpoint, { params: { id }, query }, signal === undefined ? {} : { signal });
  if (answer.status === 404) {
    const why = `The service does not know the ${name}, so nothing was written.`;
    return { isShowable: false, why };
  }
  const observedAt = boundText(await believedDate({ client, clock }, answer.date));
  const body = answer.body as WireObject | null;
  if (body?.["id"] !== id) {
    const why = `The service's answer does not show the ${name}, so nothing was written. Try again.`;
    return { isShowable: true, why };
  }
  const shown = withPlausibleTimes(body, observedAt);
  const decoded = decode(snapshotFrom(resource, shown, observedAt, "heal"));
  if (!decoded.ok) {
    const reason = decoded.partial ? "required fields are missing" : decoded.reason;
    const why = `The service shows the ${name} in a form that cannot be stored (${reason}), so nothing was written.`;
    return { isShowable: true, why };
  }
  const differing = await compareStates(db, decoded.states);
  return {
    object,
    observedAt,
    states: decoded.states,
    differences: differing.flatMap(differencesOf),
    wholeDifferences: differing.flatMap(wholeDifferencesOf),
    isRedated: shown !== body,
    seen: await readRowBeforeHeal(db, object, observedAt),
  };
}

/**
 * A key that two proposals share if they would overwrite the same row with the same states: of the mirror's row and of
 * the service's states. The time of the read is left out: the same answer a minute later is the same proposal.
 */
export function versionToHeal({ observedAt, states, seen }: HealProposal): `${string}.${string}` {
  const parts = states.map(({ group, id, updatedAt, json, columns }) => [group, id, updatedAt, json, columns]);
  // Of a state that the service dates in the future, the answer's time is the date.
  const shown = JSON.stringify(parts).replaceAll(observedAt, "");
  const service = createHash("sha256").update(shown).digest("hex");
  return `${seen.sha256 ?? "none"}.${service}`;
}

/** Replaces each `updated_at` in the future by the time of the answer. Returns the same object where there is none. */
function withPlausibleTimes(object: WireObject, observedAt: string): WireObject {
  const { updated_at: updatedAt, transactions } = object;
  const at = typeof updatedAt === "string" ? canonicalTimestamp(updatedAt) : null;
  const redated = at !== null && !isPlausibleAt(at, observedAt) ? { ...object, updated_at: observedAt } : object;
  if (!Array.isArray(transactions)) return redated;
  const entries = transactions.map((entry: unknown) =>
    isObject(entry) ? withPlausibleTimes(entry, observedAt) : entry,
  );
  return entries.every((entry, n) => entry === transactions[n]) ? redated : { ...redated, transactions: entries };
}

export interface HealDeps {
  db: Knex;
  log: Log;
  random: Random;
  listener: RunListener;
}

export interface HealOptions {
  /**
   * Further writes of the decision, such as its record: run within the transaction that writes the object. `findings`:
   * the numbers of those that it heals.
   */
  within?(trx: Knex.Transaction, findings: readonly number[]): Promise<void>;
}

/**
 * Writes the proposal over any stored versions, and records the actor and the reason (`mirror.heals`). Heals the
 * object's drift findings and notifies the listener. False where the row has changed since the proposal: a new proposal
 * is needed. Opens its own transactions. Throws `ActRefused` without a change where the database refuses the values.
 */
export async function applyHeal(
  deps: HealDeps,
  { object, states, observedAt, seen }: HealProposal,
  decision: Decision,
  { within }: HealOptions = {},
): Promise<boolean> {
  const { resource, id } = object;
  const { listener } = deps;
  const at = new Date(observedAt);
  const isDone = await listener.tellWithin(deps.log, (tell) =>
    retryOnConflict(
      deps,
      () =>
        inTransaction(deps.db, async (trx) => {
          const done = await overwriteObject(trx, object, { states, observedAt, seen }, decision);
          if (done.kind === "changed") return false;
          const open = await findingsOfObject(trx, object);
          const findings = open.filter(isHealedByHand).map((finding) => Number(finding.id));
          const keys = driftClasses.map((kind) => driftKey(kind, resource, id));
          await healFindingsOf(trx, { heal: done.heal, at }, keys);
          const news = { states: newStates(done.written) };
          await tell(trx, news, "reconciliation");
          await within?.(trx, findings);
          return true;
        }),
      { waitsForLocks: true },
    ).catch((error: unknown) => {
      throw refusesRow(error) ? refusedRow(object, error) : error;
    }),
  );
  if (isDone) await listener.healedByHand(deps, object, at);
  return isDone;
}

/** The server's own text is left out: it may repeat personal data. */
const refusedRow = ({ resource, id }: ObjectKey, cause: unknown): ActRefused =>
  new ActRefused(
    "hindered",
    `The database refuses what the service shows of the ${resource} ${id} (SQLSTATE ${errorCode(cause)}), so nothing was ` +
      "written. Have the service's support correct the object, and heal it then.",
    { cause },
  );
