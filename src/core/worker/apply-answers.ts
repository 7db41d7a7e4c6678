import type { Knex } from "knex";
import { type DueRefetch, completeRefetches, requestRefetches } from "../inbox/refetch.ts";
import type { Listener } from "../mirror/listener.ts";
import type { ObjectKey, Snapshot } from "../mirror/snapshot.ts";
import { type WriterLimits, applySnapshots, defaultWriterLimits, withoutWaiting } from "../mirror/write/apply.ts";
import { type Log, safeReason } from "../../platform/log.ts";
import { inTransaction, isRetryableConflict, retryOnConflict } from "../../platform/postgres/transactions.ts";
import type { Random } from "../../platform/random.ts";
import { isEventFault } from "./apply-batch.ts";
import { partialObjects, refetchesAfter, refetchesForAlerts } from "./outcomes.ts";

export interface AnswerDeps {
  db: Knex;
  log: Log;
  random: Random;
  listener: Listener;
}

/** One answer of the service. */
export interface ReadPage {
  observations: Snapshot[];
  /** Objects that the answer names but does not contain: they need a refetch of their own. */
  unread: ObjectKey[];
  date: Date;
}

/** The part of an answer that is applied for the requested object. */
interface Answer {
  wanted: Pick<DueRefetch, "resource" | "id">;
  page: Pick<ReadPage, "observations" | "unread">;
}

/** Whether an answer with this `Date` is too early to confirm the tie that the refetch is for. */
export const isEarly = ({ notBefore }: Pick<DueRefetch, "notBefore">, date: Date): boolean =>
  notBefore !== null && date < notBefore;

/**
 * Applies an answer to a refetch of one object and completes the refetch, unless the answer is early. Returns the reason
 * when the answer does not show the object. Throws when the database does not answer, or refuses the object.
 */
export type AnswerGroup = (refetch: DueRefetch, page: ReadPage) => Promise<string | null>;

interface Waiting {
  refetch: DueRefetch;
  page: ReadPage;
  resolve: (problem: string | null) => void;
  reject: (error: unknown) => void;
}

/**
 * Applies the answers that arrive during a transaction together in the next one: a transaction costs many times as much
 * as an object in it. There is no timer. If a transaction fails, its answers are halved, so that an object that the
 * database refuses costs no other.
 */
export function createAnswerGroup(deps: AnswerDeps): AnswerGroup {
  const waiting: Waiting[] = [];
  let isApplying = false;

  async function applyWaiting(): Promise<void> {
    isApplying = true;
    while (waiting.length > 0) await applyGroup(deps, waiting.splice(0));
    isApplying = false;
  }

  return (refetch, page) =>
    new Promise((resolve, reject) => {
      waiting.push({ refetch, page, resolve, reject });
      if (!isApplying) void applyWaiting();
    });
}

/** Never throws: each answer gets its own result. */
async function applyGroup(
  deps: AnswerDeps,
  group: readonly Waiting[],
  limits: WriterLimits = defaultWriterLimits,
): Promise<void> {
  try {
    const answers = group.map(({ refetch, page }) => ({ wanted: refetch, page }));
    const problems = await applyTogether(deps, answers, limits);
    const over = group.filter(({ refetch, page }, n) => problems[n] === null && !isEarly(refetch, page.date));
    await completeRefetches(
      deps.db,
      over.map(({ refetch }) => refetch),
    );
    for (const [n, { resolve }] of group.entries()) resolve(problems[n] ?? null);
  } catch (error) {
    const isOfOne = isEventFault(error) || isRetryableConflict(error);
    if (group.length === 1 || !isOfOne) {
      for (const { reject } of group) reject(error);
      return;
    }
    deps.log.warn({ err: error, answers: group.length }, "answers failed together and are halved");
    const half = Math.ceil(group.length / 2);
    const left = limitsAfter(error, limits);
    await applyGroup(deps, group.slice(0, half), left);
    await applyGroup(deps, group.slice(half), left);
  }
}

const limitsAfter = (error: unknown, limits: WriterLimits): WriterLimits =>
  isRetryableConflict(error) ? withoutWaiting(limits) : limits;

/**
 * Applies one answer and requests the refetches that it requires. Returns the reason when the answer does not show the
 * requested object. When the database refuses an object of a page, the others are applied, and that refusal is the
 * reason. Idempotent; opens its own transactions. Throws when the database does not answer, refuses the only object, or
 * has an object locked; the others are applied then.
 */
export async function applyAnswer(
  deps: AnswerDeps,
  wanted: Answer["wanted"],
  page: Answer["page"],
  limits: WriterLimits = defaultWriterLimits,
): Promise<string | null> {
  const { observations, unread } = page;
  try {
    const [problem = null] = await applyTogether(deps, [{ wanted, page }], limits);
    return problem;
  } catch (error) {
    const isOfOne = isEventFault(error) || isRetryableConflict(error);
    if (observations.length <= 1 || !isOfOne) throw error;
    deps.log.warn(
      { err: error, objects: observations.length },
      "an answer could not be applied as a whole and is halved",
    );
    const half = Math.ceil(observations.length / 2);
    const parts = [
      { observations: observations.slice(0, half), unread },
      { observations: observations.slice(half), unread: [] },
    ];
    const problems: (string | null)[] = [];
    const left = limitsAfter(error, limits);
    const locked: unknown[] = [];
    for (const part of parts) {
      try {
        problems.push(await applyPart(deps, wanted, part, left));
      } catch (conflict) {
        if (!isRetryableConflict(conflict)) throw conflict;
        locked.push(conflict);
      }
    }
    if (locked.length > 0) throw locked[0];
    return problems.find((problem) => problem !== null) ?? null;
  }
}

async function applyPart(
  deps: AnswerDeps,
  wanted: Answer["wanted"],
  part: Answer["page"],
  limits: WriterLimits,
): Promise<string | null> {
  try {
    return await applyAnswer(deps, wanted, part, limits);
  } catch (error) {
    if (!isEventFault(error)) throw error;
    const [refused] = part.observations;
    const named = { resource: refused?.resource, id: refused?.object["id"] };
    deps.log.error({ err: error, ...named }, "an object of an answer could not be applied");
    return safeReason(error);
  }
}

/** Applies answers in one transaction. Returns for each the reason when it does not show its object. */
async function applyTogether(
  deps: AnswerDeps,
  answers: readonly Answer[],
  limits: WriterLimits,
): Promise<(string | null)[]> {
  const observations = answers.flatMap(({ page }) => page.observations);
  const owners = answers.flatMap((answer) => answer.page.observations.map(() => answer));
  const unread = answers.flatMap(({ page }) => page.unread);
  const { outcomes } = await deps.listener.tellWithin(deps.log, (tell) =>
    retryOnConflict(deps, () =>
      inTransaction(deps.db, async (trx) => {
        const applied = await applySnapshots(trx, observations, limits);
        const isWanted = new Set(answers.map(({ wanted }) => keyOf(wanted)));
        const partial = partialObjects(observations, applied.outcomes);
        const others = partial.filter((object) => !isWanted.has(keyOf(object)));
        const { ties } = applied;
        const reads = refetchesAfter({ ties, unread: [...applied.unread, ...unread, ...others] });
        const news = { states: applied.written, future: applied.unbelieved };
        const missingFacts = await tell(trx, news, "read");
        await requestRefetches(trx, [...reads, ...refetchesForAlerts(missingFacts)]);
        return applied;
      }),
    ),
  );
  const problems = new Map<Answer, string>();
  for (const [n, outcome] of outcomes.entries()) {
    const [shown, owner] = [observations[n]?.resource, owners[n]];
    const isOwn = shown === owner?.wanted.resource;
    const problem =
      outcome.outcome === "unreadable"
        ? outcome.reason
        : outcome.outcome === "partial" && isOwn
          ? "required fields are missing"
          : null;
    if (problem === null) continue;
    deps.log.warn({ resource: shown, problem }, "the service's answer cannot be read");
    if (isOwn && owner !== undefined && !problems.has(owner)) problems.set(owner, problem);
  }
  return answers.map((answer) => problems.get(answer) ?? null);
}

const keyOf = ({ resource, id }: { resource: string; id: string }): string => `${resource}:${id}`;
