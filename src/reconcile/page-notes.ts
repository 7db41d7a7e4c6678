import type { Knex } from "knex";
import type { AlertDesk } from "../alerts/desk.ts";
import type { TellAlerts } from "../alerts/isolated-alerts.ts";
import { keepUnbelieved } from "../mirror/unbelieved.ts";
import type { ServicePage } from "../service/list-pages.ts";
import { addDoubts, addUnreadable, doubtUnlisted } from "./doubts.ts";
import type { LedgerSlice, Tally } from "./ledger.ts";
import type { PageLook } from "./look.ts";
import { noteSeenOpenItems } from "./open-items.ts";
import type { Shown } from "./page-order.ts";
import { recordUnreadable } from "./unreadable.ts";

interface NoteContext {
  run: number;
  failedSince: Date | null;
}

/** Rows of the mirror that pages of a closed slice should have shown. */
export async function noteUnlisted(
  db: Knex,
  { run }: NoteContext,
  slice: LedgerSlice,
  shown: Shown | null,
  { date }: ServicePage,
): Promise<void> {
  if (!slice.isClosed || shown === null) return;
  const { resource, number } = slice;
  await doubtUnlisted(db, { run, noticedAt: date }, { resource, slice: number, ...shown });
}

/** Open items that were read, so that only the others are read by id; nothing where everything is read. */
export async function noteOpenItems(
  db: Knex,
  { run, failedSince }: NoteContext,
  { objects }: PageLook,
): Promise<void> {
  if (failedSince === null) return;
  for (const resource of ["order", "transaction", "subscription"] as const) {
    const ids = objects.flatMap((object) => (object.resource === resource ? [object.id] : []));
    await noteSeenOpenItems(db, { run, failedSince }, { resource, ids });
  }
}

/** What a page told of without showing it, and what it showed unreadably. In the page's transaction. */
export async function noteUnread(
  trx: Knex.Transaction,
  { run, alerts }: NoteContext & { alerts: AlertDesk },
  look: PageLook,
  tell: TellAlerts,
): Promise<void> {
  const noticedAt = new Date(look.observedAt);
  await addDoubts(
    trx,
    { run, noticedAt },
    look.unread.map((object) => ({ ...object, dueAt: noticedAt })),
  );
  await recordUnreadable(trx, { run, seenAt: noticedAt }, look.unreadable);
  await keepUnbelieved(trx, look.unbelieved);
  await tell(trx, alerts, { future: look.unbelieved }, "reconciliation");
  await addUnreadable(trx, { run, noticedAt }, look.unreadable);
}

/** Objects that came to no other verdict are equal. */
export function added(before: Tally, look: PageLook, page: Tally): Tally {
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
