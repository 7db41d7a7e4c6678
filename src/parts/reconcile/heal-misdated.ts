import type { Knex } from "knex";
import {
  ServiceAnswerError,
  type ServiceError,
  ServiceRefusedError,
  ServiceUnavailableError,
} from "../../core/client/service-errors.ts";
import { giveUpMisdated, listMisdated } from "../../core/mirror/misdated.ts";
import type { ObjectKey } from "../../core/mirror/snapshot.ts";
import type { Decision } from "../../core/mirror/write/overwrite.ts";
import { ActRefused } from "../../app/people/act.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import {
  type HealDeps,
  type HealProposal,
  type HealRefusal,
  type ProposalDeps,
  applyHeal,
  assertOwnAccount,
  readProposal,
} from "./heal-object.ts";

/** Sizes of a batch of listed objects, and of concurrent reads. */
const [batchSize, readAtOnce] = [200, 8];

export interface MisdatedHeals {
  /** Objects that are as the service shows them. */
  healed: number;
  /** Objects that no read can show, as the service does not know them: they no longer wait. */
  givenUp: ObjectKey[];
  /** Objects that still wait, with the reason. */
  left: { object: ObjectKey; why: string }[];
}

export interface HealMisdatedOptions {
  /** Objects that waited until then: what comes later is for the next time, so that this one ends. */
  until: Date;
  /** Further writes of the decision, such as its record: run within the transaction of the first object. */
  withFirst(trx: Knex.Transaction): Promise<void>;
  onProgress(done: number): void;
}

/**
 * Writes every object that is dated in the future in the service's present state, one transaction an object, as
 * `applyHeal` does for one. An object that the service does not know no longer waits. An interruption keeps what was
 * written, and the next call continues with the rest. Throws `ConfigurationError` unless the key is known to belong to
 * the mirror's account, and the client's errors.
 */
export async function healMisdated(
  deps: HealDeps & ProposalDeps,
  decision: Decision,
  { until, withFirst, onProgress }: HealMisdatedOptions,
): Promise<MisdatedHeals> {
  await assertOwnAccount(deps);
  const heals: MisdatedHeals = { healed: 0, givenUp: [], left: [] };
  const within = async (trx: Knex.Transaction): Promise<void> => {
    if (heals.healed + heals.givenUp.length === 0) await withFirst(trx);
  };
  for (let after: ObjectKey | null = null; ;) {
    const batch: ObjectKey[] = await listMisdated(deps.db, { after, limit: batchSize, until });
    for (let n = 0; n < batch.length; n += readAtOnce) {
      const objects = batch.slice(n, n + readAtOnce);
      const read = await readTogether(deps, objects);
      for (const [place, object] of objects.entries()) {
        await healOne(deps, object, read[place], decision, within, heals);
      }
      onProgress(heals.healed + heals.givenUp.length + heals.left.length);
    }
    after = batch.at(-1) ?? null;
    if (batch.length < batchSize) return heals;
  }
}

/**
 * An object that the service cannot show does not keep others from being healed. Throws where it shows none of several.
 */
async function readTogether(
  deps: ProposalDeps,
  objects: readonly ObjectKey[],
): Promise<(HealProposal | HealRefusal)[]> {
  const answers = await Promise.allSettled(objects.map((object) => readProposal(deps, object)));
  const isNoneShown = answers.length > 1 && answers.every(({ status }) => status === "rejected");
  return answers.map((answer) => {
    if (answer.status === "fulfilled") return answer.value;
    const error: unknown = answer.reason;
    if (isNoneShown || !isOfOneObject(error)) throw error;
    return { isShowable: true, why: error.message };
  });
}

const isOfOneObject = (error: unknown): error is ServiceError =>
  error instanceof ServiceAnswerError ||
  (error instanceof ServiceUnavailableError && error.retryAfterMs === null) ||
  (error instanceof ServiceRefusedError && error.status !== 401 && error.status !== 403);

async function healOne(
  deps: HealDeps,
  object: ObjectKey,
  read: HealProposal | HealRefusal | undefined,
  decision: Decision,
  within: (trx: Knex.Transaction) => Promise<void>,
  heals: MisdatedHeals,
): Promise<void> {
  if (read === undefined) return;
  if (!("why" in read)) {
    const why = await healedOrWhy(deps, read, decision, within);
    if (why === null) heals.healed += 1;
    else heals.left.push({ object, why });
  } else if (read.isShowable) {
    heals.left.push({ object, why: read.why });
  } else {
    await inTransaction(deps.db, async (trx) => {
      await giveUpMisdated(trx, object);
      await within(trx);
    });
    heals.givenUp.push(object);
  }
}

/** Null once it is healed. */
async function healedOrWhy(
  deps: HealDeps,
  read: HealProposal,
  decision: Decision,
  within: (trx: Knex.Transaction) => Promise<void>,
): Promise<string | null> {
  try {
    const isDone = await applyHeal(deps, read, decision, { within });
    return isDone ? null : "The row has changed since it was read.";
  } catch (error) {
    if (error instanceof ActRefused) return error.message;
    throw error;
  }
}
