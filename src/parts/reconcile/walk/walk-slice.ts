import type { Knex } from "knex";
import type { ServiceClient, ServicePage } from "../../../core/client/service-client.ts";
import type { Listener, Tell } from "../../../core/mirror/listener.ts";
import { resourceNamed } from "../../../core/mirror/resources.ts";
import type { ObjectKey } from "../../../core/mirror/snapshot.ts";
import { keepUnbelieved } from "../../../core/mirror/write/apply.ts";
import type { Log } from "../../../platform/log.ts";
import { inTransaction, retryOnConflict } from "../../../platform/postgres/transactions.ts";
import type { Random } from "../../../platform/random.ts";
import { type ApplyContext, compareAnswer, applyDifferences } from "../compare/apply-differences.ts";
import type { Triaged } from "../compare/classify.ts";
import { type DecodedAnswer, decodeAnswer } from "../compare/decode-answer.ts";
import {
  type LedgerSlice,
  type PageProgress,
  type SummedTransaction,
  type Tally,
  addDailySums,
  advanceSlice,
  summedTransactions,
} from "../coverage/ledger.ts";
import { sliceQuery } from "../coverage/slice.ts";
import { recordUnreadable } from "../findings/drift-findings.ts";
import { addRechecks, addUnreadable, recheckUnlisted } from "../recheck/rechecks.ts";
import { recordReadOpenItems, openResources } from "../recheck/unread.ts";
import { type PageSpan, type ShownObjects, spanOfPage, joinedRanges } from "./page-span.ts";

export interface WalkDeps {
  db: Knex;
  client: Pick<ServiceClient, "get" | "listPages">;
  log: Log;
  random: Random;
  listener: Listener;
}

export interface WalkContext extends ApplyContext {
  cause: string;
  pageSize: number;
  pagesPerCheckpoint: number;
  /** Open items created since then are recorded as read; null where everything is read anyway. */
  failedSince: Date | null;
  /** IANA name; sets the day boundaries of the control sums. */
  timeZone: string;
  signal: AbortSignal;
  onPage(rows: number): void;
}

/**
 * Reads a slice from its checkpoint to its end, heals page by page, and completes it in the ledger. A page's checkpoint
 * commits with the page's changes; pages without changes share one. Throws the client's errors, `UnusablePage`,
 * `CheckpointConflict`, and the signal's reason.
 */
export async function walkSlice(deps: WalkDeps, context: WalkContext, slice: LedgerSlice): Promise<void> {
  let walk: Walk = { slice, stored: slice.pages, progress: slice, sums: [], read: [], shown: null };
  const { cursor } = slice.checkpoint;
  const pages = deps.client.listPages(
    resourceNamed(slice.resource).service.list,
    {
      query: {
        ...sliceQuery(slice, context.pageSize),
        ...(cursor === null ? {} : { starting_after: cursor }),
      },
    },
    { priority: "walk", signal: context.signal },
  );
  // A page may repeat an object that the previous page is healing: it is compared ahead of time only after one without
  // changes.
  const calm = { isCalm: true };
  for await (const decoded of ahead(decodedPages(deps, context, slice, ahead(pages), calm))) {
    context.signal.throwIfAborted();
    const sorted = await (calm.isCalm && decoded.early !== null
      ? decoded.early
      : compareAnswer(deps.db, decoded.look, context, { isRecheck: false }));
    calm.isCalm = sorted === null;
    walk = await workOnPage(deps, context, walk, decoded, sorted);
    context.onPage(decoded.page.items.length);
    if (decoded.span.isEnd) return;
  }
}

interface DecodedPage {
  page: ServicePage;
  span: PageSpan;
  look: DecodedAnswer;
  /** The comparison, if it was started while the page before was being processed. */
  early: Promise<Triaged | null> | null;
}

async function* decodedPages(
  { db }: WalkDeps,
  context: WalkContext,
  slice: LedgerSlice,
  pages: AsyncIterable<ServicePage>,
  calm: Readonly<{ isCalm: boolean }>,
): AsyncGenerator<DecodedPage, void, undefined> {
  let { checkpoint } = slice;
  const expectsOrder = slice.filter["expand"] === "order";
  const { resource } = slice;
  for await (const page of pages) {
    const span = spanOfPage(slice, checkpoint, page);
    ({ checkpoint } = span);
    const of = { resource, date: page.date, cause: context.cause, expectsOrder };
    const look = decodeAnswer(of, page.items);
    const early = calm.isCalm ? compareAnswer(db, look, context, { isRecheck: false }) : null;
    // The consumer may stop before it awaits this; its failure must not become an unhandled rejection.
    early?.catch(() => {});
    yield { page, span, look, early };
    if (span.isEnd) return;
  }
}

interface Walk {
  slice: LedgerSlice;
  /** The number of pages that the ledger has recorded. */
  stored: number;
  progress: PageProgress;
  /** Sums of the pages that the ledger has not recorded yet, as are `read` and `shown`. */
  sums: SummedTransaction[];
  /** The objects shown, where open items are noted; empty elsewhere. */
  read: ObjectKey[];
  shown: ShownObjects | null;
}

async function workOnPage(
  deps: WalkDeps,
  context: WalkContext,
  { slice, stored, progress, sums, read, shown }: Walk,
  { page, span, look }: DecodedPage,
  sorted: Triaged | null,
): Promise<Walk> {
  const { db } = deps;
  const isSummed = slice.resource === "transaction" && slice.isClosed;
  const walk: Walk = {
    slice,
    stored,
    progress: {
      checkpoint: span.checkpoint,
      pages: progress.pages + 1,
      rows: progress.rows + page.items.length,
      readAt: progress.readAt ?? page.date,
      tally: progress.tally,
    },
    sums: isSummed ? [...sums, ...summedTransactions(page.items)] : sums,
    read: context.failedSince === null ? read : [...read, ...look.objects],
    shown: joinedRanges(slice, shown, span.range),
  };
  const hasChanges = sorted !== null || look.unread.length > 0 || look.unreadable.length > 0;
  const isDue = walk.progress.pages - stored >= context.pagesPerCheckpoint;
  if (!hasChanges && !span.isEnd && !isDue) {
    return { ...walk, progress: { ...walk.progress, tally: added(progress.tally, look, {}) } };
  }
  const written = await deps.listener.tellWithin(deps.log, (tell) =>
    retryOnConflict(
      deps,
      () =>
        inTransaction(db, async (trx) => {
          await noteUnlisted(trx, context, slice, walk.shown, page);
          const tally =
            sorted === null ? {} : await applyDifferences(trx, context, look, sorted, { isRecheck: false, tell });
          await noteUnread(trx, context, look, tell);
          // After the heal: objects that were missing are in the mirror now.
          await noteOpenItems(trx, context, walk.read);
          const next = { ...walk.progress, tally: added(progress.tally, look, tally) };
          const key = { run: slice.run, slice: slice.number };
          await addDailySums(trx, key, context.timeZone, walk.sums);
          const state = span.isEnd ? "complete" : "pending";
          await advanceSlice(trx, slice, { pages: stored }, next, state);
          return next;
        }),
      { waitsForLocks: true },
    ),
  );
  return { slice, stored: written.pages, progress: written, sums: [], read: [], shown: null };
}

/** Requests the next item while the last one is being processed. */
async function* ahead<T>(all: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
  const iterator = all[Symbol.asyncIterator]();
  try {
    let coming = iterator.next();
    for (;;) {
      const { done, value } = await coming;
      if (done === true) return;
      coming = iterator.next();
      // The consumer may stop before it awaits this; its failure must not become an unhandled rejection.
      coming.catch(() => {});
      yield value;
    }
  } finally {
    void iterator.return?.();
  }
}

interface NoteContext {
  run: number;
  failedSince: Date | null;
}

/** Rechecks rows of the mirror that the pages of a closed slice should have shown. */
async function noteUnlisted(
  trx: Knex.Transaction,
  { run }: NoteContext,
  slice: LedgerSlice,
  shown: ShownObjects | null,
  { date }: ServicePage,
): Promise<void> {
  if (!slice.isClosed || shown === null) return;
  const { resource, number } = slice;
  await recheckUnlisted(trx, { run, noticedAt: date }, { resource, slice: number, ...shown });
}

/**
 * Records the open items that were read, so that only the others are read by id; does nothing where everything is read.
 */
async function noteOpenItems(
  trx: Knex.Transaction,
  { run, failedSince }: NoteContext,
  read: readonly ObjectKey[],
): Promise<void> {
  if (failedSince === null) return;
  for (const resource of openResources) {
    const ids = read.flatMap((object) => (object.resource === resource ? [object.id] : []));
    await recordReadOpenItems(trx, { run, failedSince }, { resource, ids });
  }
}

/**
 * Records objects that a page mentions without showing, shows in an unreadable form, or dates in the future. Call it in
 * the page's transaction.
 */
async function noteUnread(trx: Knex.Transaction, { run }: NoteContext, look: DecodedAnswer, tell: Tell): Promise<void> {
  const noticedAt = new Date(look.observedAt);
  await addRechecks(
    trx,
    { run, noticedAt },
    look.unread.map((object) => ({ ...object, dueAt: noticedAt })),
  );
  await recordUnreadable(trx, { run, seenAt: noticedAt }, look.unreadable);
  await keepUnbelieved(trx, look.unbelieved);
  await tell(trx, { future: look.unbelieved }, "reconciliation");
  await addUnreadable(trx, { run, noticedAt }, look.unreadable);
}

/** Adds a page's classifications to a tally. Objects without one are equal. */
function added(before: Tally, look: DecodedAnswer, page: Tally): Tally {
  const sum: Tally = { ...before };
  const shown = new Set(look.objects.map(({ resource, id }) => `${resource}:${id}`)).size;
  const others = Object.values(page).reduce((all, n) => all + n, 0);
  const all: Tally = {
    ...page,
    equal: Math.max(0, shown - others),
    unreadable: look.unreadable.length,
  };
  for (const [verdict, n] of Object.entries(all) as [keyof Tally, number][]) {
    if (n > 0) sum[verdict] = (sum[verdict] ?? 0) + n;
  }
  return sum;
}
