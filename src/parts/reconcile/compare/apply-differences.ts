import type { Knex } from "knex";
import { compareStates } from "../../../core/mirror/compare/compare-states.ts";
import type { NewsSource, Tell } from "../../../core/mirror/listener.ts";
import type { GroupState } from "../../../core/mirror/snapshot.ts";
import { timeOfVersion } from "../../../core/mirror/version.ts";
import { applyStates, newStates } from "../../../core/mirror/write/apply.ts";
import { safeReason } from "../../../platform/log.ts";
import { refusesRow } from "../../../platform/postgres/errors.ts";
import type { Tally, ObjectClass } from "../coverage/ledger.ts";
import { createdAt, driftFindings, driftKey, recordUnreadable, withRemedy } from "../findings/drift-findings.ts";
import { type FoundIn, healFindings, recordFindings } from "../findings/findings.ts";
import { type NewRecheck, addRechecks, addUnreadable } from "../recheck/rechecks.ts";
import { type Classified, type Triaged, classify, hasDifferences, triage, statesOf } from "./classify.ts";
import { settledAmong } from "./settlement.ts";
import type { DecodedAnswer } from "./decode-answer.ts";

export interface ApplyContext {
  run: number;
  graceMs: number;
  /** Records findings and changes nothing in the mirror. */
  reportOnly: boolean;
  /** Alerts of an initial import cover only what still matters, and apply to everything that this run writes. */
  isInitialImport: boolean;
  /** An object missing here that last changed before this time is imported and is not drift. Fixed form; null: none. */
  importedUntil: string | null;
}

/**
 * Compares an answer with the mirror. Only reads; `applyDifferences` applies the result. Null where both are exactly
 * equal.
 */
export async function compareAnswer(
  db: Knex,
  look: DecodedAnswer,
  { graceMs }: Pick<ApplyContext, "graceMs">,
  { isRecheck }: { isRecheck: boolean },
): Promise<Triaged | null> {
  const differing = await compareStates(db, look.states);
  if (differing.length === 0) return null;
  const { observedAt, states } = look;
  const classified = differing.map((object) => classify(object, { observedAt, graceMs }));
  const settled = await settledAmong(db, classified, states);
  return triage(classified, { isRecheck, settled });
}

/**
 * Applies differences, records findings and alerts, queues rechecks. Objects missing or behind here are written by
 * `applyStates` and recorded as found and healed. Objects that an event brought in the meantime are no finding. Objects
 * that a confirmed answer cannot heal stay open. An object that the database refuses costs no other: it is recorded as
 * unreadable. Returns the number of objects by classification. Needs a transaction; may fail with 40P01 or 40001.
 */
export async function applyDifferences(
  trx: Knex.Transaction,
  context: ApplyContext,
  look: DecodedAnswer,
  { apply, recheck, overtaken }: Triaged,
  { isRecheck, tell }: { isRecheck: boolean; tell: Tell },
): Promise<Tally> {
  const sighting: FoundIn = { run: context.run, seenAt: new Date(look.observedAt) };
  const { importedUntil } = context;
  const drifted = apply.filter((classified) => isDrift(classified, importedUntil));
  // Before the writes: causes are read from the history, which must not contain the written states yet.
  const findings = await driftFindings(trx, drifted);
  const { healed, unhealed, refused: unstored, written } = await heal(trx, context, apply);
  const left = isRecheck || context.reportOnly ? await stillDiffering(trx, unhealed) : [];
  const found = new Set([...healed, ...left].map(keyOf));
  const refused = new Set(context.reportOnly ? [] : left.map(keyOf));
  await recordFindings(
    trx,
    sighting,
    findings
      .filter(({ key }) => found.has(key))
      .map((finding) => (refused.has(finding.key) ? withRemedy(finding) : finding)),
  );
  await healFindings(trx, sighting, healed.map(keyOf));
  await noteUnstored(trx, context, look, unstored);
  // The refetches that `tell` returns are not ordered: a nightly run reads every live subscription anyway.
  for (const [source, states] of bySource(written, context)) {
    if (states.length > 0) await tell(trx, { states }, source);
  }
  const again = isRecheck || context.reportOnly ? recheck : [...recheck, ...unhealed];
  await addRechecks(
    trx,
    { run: context.run, noticedAt: sighting.seenAt },
    again.flatMap((classified) => rechecksOf(classified, sighting.seenAt, context.graceMs)),
  );
  return tallyOf([
    ...[...healed, ...left].map((classified) => verdictOf(classified, importedUntil)),
    ...again.map((): ObjectClass => "doubtful"),
    ...overtaken.map((): ObjectClass => "overtaken"),
    ...unstored.map((): ObjectClass => "unreadable"),
  ]);
}

async function heal(
  trx: Knex.Transaction,
  { reportOnly }: Pick<ApplyContext, "reportOnly">,
  classified: readonly Classified[],
): Promise<Healed> {
  const none: Healed = { healed: [], unhealed: [], refused: [], written: [] };
  if (reportOnly) return { ...none, unhealed: [...classified] };
  try {
    // A savepoint: a refusal by the database does not undo the rest of the transaction.
    const applied = await trx.transaction((own) => applyStates(own, statesOf(classified)));
    const isHealed = ({ object }: Classified) => object.groups.some(({ state }) => applied.changed.has(state));
    return {
      ...none,
      healed: classified.filter(isHealed),
      unhealed: classified.filter((one) => !isHealed(one)),
      written: newStates(applied),
    };
  } catch (error) {
    if (!refusesRow(error)) throw error;
    const [one, ...others] = classified;
    if (one === undefined) throw error;
    if (others.length === 0) return { ...none, refused: [{ ...one, reason: safeReason(error) }] };
    const half = Math.ceil(classified.length / 2);
    const [first, second] = [
      await heal(trx, { reportOnly }, classified.slice(0, half)),
      await heal(trx, { reportOnly }, classified.slice(half)),
    ];
    return {
      healed: [...first.healed, ...second.healed],
      unhealed: [...first.unhealed, ...second.unhealed],
      refused: [...first.refused, ...second.refused],
      written: [...first.written, ...second.written],
    };
  }
}

interface Healed {
  healed: Classified[];
  unhealed: Classified[];
  /** Objects that the database refuses, with the reason. */
  refused: (Classified & { reason: string })[];
  written: GroupState[];
}

/** An object that the database refuses is a hole in the run's proof, like one that cannot be read. */
async function noteUnstored(
  trx: Knex.Transaction,
  { run }: ApplyContext,
  { observedAt }: DecodedAnswer,
  refused: Healed["refused"],
): Promise<void> {
  if (refused.length === 0) return;
  const noticedAt = new Date(observedAt);
  const objects = refused.map(({ resource, id, object, reason }) => ({
    resource,
    id,
    reason,
    createdAt: createdAt(object),
  }));
  await recordUnreadable(trx, { run, seenAt: noticedAt }, objects);
  await addUnreadable(trx, { run, noticedAt }, objects);
}

async function stillDiffering(trx: Knex, classified: readonly Classified[]): Promise<Classified[]> {
  const differing = await compareStates(trx, statesOf(classified));
  const ids = new Set(differing.map(({ resource, id }) => `${resource}:${id}`));
  return classified.filter(({ object }) => ids.has(`${object.resource}:${object.id}`));
}

/** Rechecks of the objects whose reads confirm the differing groups: for an entry embedded in an order, the order. */
const rechecksOf = (
  { resource, id, object, classification }: Classified,
  seenAt: Date,
  graceMs: number,
): NewRecheck[] =>
  object.groups.map(({ state: { confirmedBy } }) => ({
    ...(confirmedBy ?? { resource, id }),
    why: classification.kind === "mismatch" ? "mismatch" : "young",
    dueAt: new Date(seenAt.getTime() + graceMs),
    createdAt: confirmedBy === null || confirmedBy.id === id ? createdAt(object) : null,
  }));

const verdictOf = (classified: Classified, importedUntil: string | null): ObjectClass =>
  isImported(classified, importedUntil) ? "imported" : classified.classification.kind;

const keyOf = ({ classification, resource, id }: Classified): string => driftKey(classification.kind, resource, id);

/**
 * Splits the written states by the source that alerts name for them. States from before the first webhook count as an
 * initial import, even if the object was known already (a transaction may be known from its order). All others were
 * missed later.
 */
function bySource(
  written: readonly GroupState[],
  { isInitialImport, importedUntil }: Pick<ApplyContext, "isInitialImport" | "importedUntil">,
): [NewsSource, GroupState[]][] {
  const isOld = (state: GroupState): boolean =>
    isInitialImport || (importedUntil !== null && timeOfVersion(state.version) < importedUntil);
  return [
    ["import", written.filter(isOld)],
    ["reconciliation", written.filter((state) => !isOld(state))],
  ];
}

const isDrift = (classified: Classified, importedUntil: string | null): boolean =>
  hasDifferences(classified.classification) && !isImported(classified, importedUntil);

const isImported = ({ classification, object }: Classified, importedUntil: string | null): boolean =>
  classification.kind === "missing_here" &&
  importedUntil !== null &&
  object.groups.every(({ state }) => timeOfVersion(state.version) < importedUntil);

function tallyOf(verdicts: readonly ObjectClass[]): Tally {
  const tally: Tally = {};
  for (const verdict of verdicts) tally[verdict] = (tally[verdict] ?? 0) + 1;
  return tally;
}
