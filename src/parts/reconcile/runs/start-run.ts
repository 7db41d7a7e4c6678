import type { Knex } from "knex";
import type { ServiceClient } from "../../../core/client/service-client.ts";
import { listOrders } from "../../../core/contract/resources/orders.ts";
import { ServiceRefusedError } from "../../../core/client/service-errors.ts";
import { listPageSchema } from "../../../core/contract/lists.ts";
import { firstEventAt } from "../../../core/inbox/queries.ts";
import { TallyhookError } from "../../../platform/errors.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { coveredUntil } from "../coverage/coverage.ts";
import { boundText } from "../coverage/slice.ts";
import { makePlan } from "../plan.ts";
import { type ReconcileSettings, dayMs } from "../settings.ts";
import { type BeforeRun, type Run, type RunKind, findInterrupted, openRun, reopenRun } from "./runs.ts";
import { isMirrorEmpty } from "../../../core/mirror/look-up.ts";

export interface ProbeResult {
  pageSize: number;
  calls: number;
  /** The service's `Date`. */
  date: Date;
}

/**
 * Finds the first of `sizes` that the service accepts. If it silently returns fewer objects although it has more, their
 * number is the page size. Throws the client's errors, among them the refusal of the last size.
 */
export async function probePageSize(
  client: Pick<ServiceClient, "get">,
  sizes: readonly number[],
  signal: AbortSignal,
): Promise<ProbeResult> {
  for (const [n, size] of sizes.entries()) {
    try {
      const { body, date } = await client.get(
        listOrders,
        { query: { limit: String(size) } },
        { priority: "walk", signal },
      );
      const page = listPageSchema.safeParse(body);
      const isCapped = page.success && page.data.has_more && page.data.data.length > 0;
      const pageSize = isCapped ? Math.min(size, page.data.data.length) : size;
      return { pageSize, calls: n + 1, date };
    } catch (error) {
      const isLast = n === sizes.length - 1;
      if (isLast || !(error instanceof ServiceRefusedError) || error.status !== 400) throw error;
    }
  }
  throw new RangeError("the setting pageSizes is empty");
}

interface RunRequest {
  kind: RunKind;
  runKey?: string;
  rangeFrom?: Date | null;
  rangeTo?: Date | null;
}

/** An interrupted run is resumed if its T0 is at most this long ago. */
const resumedWithinMs = dayMs;

/**
 * Resumes the interrupted run with the same request, or opens a new one with its plan. A run with its own key never
 * resumes another. Call it under the lease. Throws `UsageError` for a range that lies in the future, and what `before`
 * throws, which is called in the transaction that opens a new run.
 */
export async function resumeOrStart(
  db: Knex,
  settings: ReconcileSettings,
  { kind, runKey, rangeFrom = null, rangeTo = null }: RunRequest,
  { pageSize, date }: { pageSize: number; date: Date },
  before?: BeforeRun,
): Promise<Run> {
  const { reportOnly, graceMs, rotationNights } = settings;
  const t0 = new Date(date.getTime() - graceMs);
  const wanted = { kind, t0, rangeFrom, rangeTo, reportOnly };
  if (runKey === undefined) {
    const since = new Date(date.getTime() - resumedWithinMs);
    const interrupted = await findInterrupted(db, wanted, { since });
    if (interrupted !== null) {
      await inTransaction(db, (trx) => reopenRun(trx, interrupted.id));
      return interrupted;
    }
  }
  // A report-only run imports nothing: missing objects stay missing.
  const isInitialImport = !reportOnly && (await isFirstImport(db, wanted));
  const slices = await makePlan(db, settings, wanted);
  const newKey = runKey ?? `${kind}:${boundText(date)}:${crypto.randomUUID()}`;
  const made = { ...wanted, runKey: newKey, isInitialImport, pageSize, rotationNights };
  const run = await openRun(db, made, slices, before);
  if (run === null) {
    throw new TallyhookError(`Another process has just opened the run ${newKey}. Run it again.`);
  }
  return run;
}

/** Later than every time in the fixed form. */
const always = "9999-12-31T23:59:59.999999Z";

/**
 * Whether a run is the initial import: after a complete one, an object missing here was missed. A run after an
 * unfinished initial import counts as initial as well, as long as no event has arrived.
 */
async function isFirstImport(db: Knex, { kind, t0 }: Pick<Run, "kind" | "t0">): Promise<boolean> {
  if (await isMirrorEmpty(db)) return true;
  if ((await coveredUntil(db, t0)) !== null) return false;
  return kind === "import" || (kind !== "range" && (await firstEventAt(db)) === null);
}

/**
 * The time until which missing objects count as imported and not as drift, since no webhook can have announced them. In
 * a mirror filled by events alone, that is the time of the first event. Null: every object should be here. Fixed form.
 */
export async function importedUntil(
  db: Knex,
  { isInitialImport, reportOnly, t0 }: Pick<Run, "isInitialImport" | "reportOnly" | "t0">,
): Promise<string | null> {
  if (isInitialImport) return always;
  if (reportOnly || (await coveredUntil(db, t0)) !== null) return null;
  const first = await firstEventAt(db);
  return first === null ? null : boundText(first);
}
