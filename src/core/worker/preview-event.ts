import type { Knex } from "knex";
import { type CompletedEvent, claimEvents } from "../inbox/claim.ts";
import type { RefetchRequest } from "../inbox/refetch.ts";
import { replayEvents } from "../inbox/retention.ts";
import { readRows, rowChanges, rowKey } from "../mirror/compare/field-changes.ts";
import type { FieldChange } from "../mirror/compare/field-changes.ts";
import { groupNamed } from "../mirror/resources.ts";
import type { ObjectKey } from "../mirror/snapshot.ts";
import { safeReason } from "../../platform/log.ts";
import { inTransaction, isRetryableConflict, limitTransaction } from "../../platform/postgres/transactions.ts";
import { type AppliedEvents, type ApplyDeps, applyInTransaction, isEventFault } from "./apply-batch.ts";

/** Observes what a transaction writes: called before it, returns the function to call after it. */
export type Watch<T> = (trx: Knex.Transaction) => Promise<() => Promise<T>>;

export interface EventPreview<T> {
  kind: "applied";
  completed: CompletedEvent;
  /** Objects whose rows would change, or come into being. */
  objects: { object: ObjectKey; isNew: boolean; changes: FieldChange[] }[];
  /** Refetches that would follow. */
  refetches: readonly RefetchRequest[];
  /** The watch's result. */
  seen: T;
}

export type PreviewResult<T> =
  | EventPreview<T>
  /** It would fail and be retried later. */
  | { kind: "fails"; reason: string }
  /** Another transaction is writing it or its object. */
  | { kind: "busy" }
  /** Its bytes were pruned. */
  | { kind: "empty" };

/** Far below a worker's limits, so that waiting for a preview's lock is short. */
const limits = { statementMs: 2_000, lockMs: 500, transactionMs: 2_800 };

/**
 * Applies one event as a replay and a worker would, observes what that wrote, and rolls it back. Makes no calls. Holds
 * the locks of one event for as long as it takes, some 20 ms; leaves no row behind, and uses up numbers of sequences.
 * Throws errors that the event did not cause.
 */
export async function previewEvent<T>(
  deps: Omit<ApplyDeps, "random">,
  seq: number,
  watch: Watch<T>,
): Promise<PreviewResult<T>> {
  const { db, log, listener } = deps;
  try {
    return await listener.tellWithin(log, (tell) =>
      takenBack(db, async (trx) => {
        await limitTransaction(trx, limits);
        const tried = await takenBack(trx, async (savepoint) => {
          const ended = await watch(savepoint);
          const [replayed] = await replayEvents(savepoint, [seq]);
          if (replayed === undefined) return null;
          const { events } = await claimEvents(savepoint, [seq], {
            bytes: Number.MAX_SAFE_INTEGER,
            idleMs: limits.transactionMs,
          });
          const given = { ...deps, writerLimits: limits };
          const applied = await applyInTransaction(given, tell, savepoint, events);
          const objects = objectsOf(applied);
          return {
            applied,
            seen: await ended(),
            objects,
            after: await readRows(savepoint, objects),
          };
        });
        if (tried === null) return { kind: "empty" };
        const { applied, seen, objects, after } = tried;
        const [completed] = applied.completed;
        if (completed === undefined) return { kind: "busy" };
        const before = await readRows(trx, objects);
        return {
          kind: "applied",
          completed,
          objects: objects.flatMap((object) => {
            const [was, is] = [before, after].map((rows) => rows.get(rowKey(object)) ?? null);
            const changes = rowChanges(object.resource, was ?? null, is ?? null);
            return changes.length === 0 ? [] : [{ object, isNew: (was ?? null) === null, changes }];
          }),
          refetches: applied.refetches,
          seen,
        };
      }),
    );
  } catch (error) {
    if (isRetryableConflict(error)) return { kind: "busy" };
    if (isEventFault(error)) return { kind: "fails", reason: safeReason(error) };
    throw error;
  }
}

function objectsOf({ written }: AppliedEvents): ObjectKey[] {
  const objects = new Map<string, ObjectKey>();
  for (const { group, id } of written) {
    const resource = groupNamed(group)?.resource.name;
    if (resource === undefined) continue;
    const object = { resource, id };
    objects.set(rowKey(object), object);
  }
  return [...objects.values()];
}

/** Carries the result out of a transaction that is not to be committed. */
class TakenBack<T> extends Error {
  readonly result: T;

  constructor(result: T) {
    super("taken back");
    this.result = result;
  }
}

/** Runs work in a transaction or a savepoint that is rolled back. One snapshot, so that it sees no other writes. */
async function takenBack<T>(db: Knex, work: (trx: Knex.Transaction) => Promise<T>): Promise<T> {
  try {
    await inTransaction(
      db,
      async (trx) => {
        throw new TakenBack(await work(trx));
      },
      db.isTransaction === true ? {} : { isolationLevel: "repeatable read" },
    );
  } catch (error) {
    if (error instanceof TakenBack) return error.result as T;
    throw error;
  }
  throw new TypeError("a transaction that was to be taken back was committed");
}
