import { withBelievedDates } from "../client/believed-dates.ts";
import { listTransactions } from "../contract/resources/transactions.ts";
import { asObject, wireId } from "../contract/wire-types.ts";
import { type DueRefetch, extendLease, takeDueRefetches } from "../inbox/refetch.ts";
import { snapshotFrom } from "../mirror/snapshot.ts";
import { type ReadPage, applyAnswer } from "./apply-answers.ts";
import { disputedTransactions } from "./outcomes.ts";
import { type RefetchDeps, completeUnlessEarly, canonicalDate, giveUpOrRetry, withBackoff } from "./refetch.ts";

/** Lease for one page; each page renews it. */
const leaseSeconds = 120;
/** A longer list counts as one that never ends. */
const maxPages = 5_000;

/**
 * Reads all charged-back transactions, page by page, when that refetch is due. Runs apart from single objects, which
 * must not wait for a long list. Stops between two pages when `stop` aborts; another worker then starts over. Calls
 * `onPage` after each page, since a walk may take hours. Returns how many walks it began.
 */
export async function walkDisputes(
  deps: RefetchDeps,
  stop: AbortSignal,
  onPage: () => void = () => {},
): Promise<number> {
  const { resource: only } = disputedTransactions;
  const due = await takeDueRefetches(deps.db, { only, limit: 1, leaseSeconds });
  for (const refetch of due) await withBackoff(deps, refetch, () => walk(deps, refetch, stop, onPage));
  return due.length;
}

async function walk(deps: RefetchDeps, refetch: DueRefetch, stop: AbortSignal, onPage: () => void): Promise<void> {
  let problem: string | null = null;
  let date = new Date(0);
  let pages = 0;
  for await (const page of disputePages(deps, stop)) {
    const failed = await applyAnswer(deps, refetch, page);
    problem ??= failed;
    ({ date } = page);
    if (++pages === maxPages) return giveUpOrRetry(deps, refetch, "the list does not end");
    await extendLease(deps.db, refetch, leaseSeconds);
    onPage();
  }
  if (problem !== null) return giveUpOrRetry(deps, refetch, problem);
  await completeUnlessEarly(deps, refetch, date);
}

/** Reads the list with embedded orders. A missing order is read by its id. */
async function* disputePages(
  { client, clock }: Pick<RefetchDeps, "client" | "clock">,
  signal: AbortSignal,
): AsyncGenerator<ReadPage, void, undefined> {
  const reader = withBelievedDates(client, clock);
  const call = { query: { status: "chargeback", expand: "order" } } as const;
  const pages = reader.listPages(listTransactions, call, { priority: "fetch", signal });
  for await (const { items, date } of pages) {
    const page: ReadPage = { observations: [], unread: [], date };
    const observedAt = canonicalDate(date);
    for (const transaction of items) {
      page.observations.push(snapshotFrom("transaction", transaction, observedAt, "fetch"));
      const order = asObject((transaction as { order?: unknown }).order);
      const orderId = wireId.safeParse(transaction.order_id);
      if (order !== undefined) page.observations.push(snapshotFrom("order", order, observedAt, "fetch"));
      else if (orderId.success) page.unread.push({ resource: "order", id: orderId.data });
    }
    yield page;
  }
}
