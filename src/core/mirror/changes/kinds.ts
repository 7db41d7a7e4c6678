import { orderStatuses } from "../../contract/resources/orders.ts";
import { subscriptionStatuses } from "../../contract/resources/subscriptions.ts";
import type { Resource } from "../snapshot.ts";

/** The watched columns of a row (`MirrorResource.watched`), as text. */
export type Watched = Readonly<Record<string, string | null>>;

/** A row before and after a write. */
export interface Transition {
  /** Null if the row is new. */
  before: Watched | null;
  after: Watched;
}

/** The closed vocabulary of changes. A resource without rules of its own is `created` and `updated`. */
export const changeKinds = [
  "order.created",
  "order.paid",
  "order.failed",
  "order.refunded",
  "order.refund_failed",
  "order.disputed",
  "order.dispute_won",
  "order.dispute_lost",
  "order.voided",
  "order.updated",
  "subscription.created",
  "subscription.started",
  "subscription.renewed",
  "subscription.past_due",
  "subscription.recovered",
  "subscription.paused",
  "subscription.resumed",
  "subscription.plan_changed",
  "subscription.canceled",
  "subscription.completed",
  "subscription.updated",
  "customer.created",
  "customer.updated",
  "customer.deleted",
  "customer.erased",
  "transaction.created",
  "transaction.updated",
] as const;

export type ChangeKind = (typeof changeKinds)[number];

/**
 * The kinds of change in a write of a row, in the order in which they happened: everything that its two states prove.
 * Empty where the change has no name: the caller then records `updated` unless it records another change of the object.
 * Refunds and disputes come from `factsOf`.
 */
export function kindsOf(resource: Resource, { before, after }: Transition): string[] {
  const kinds = before === null ? ["created"] : [];
  const former = before === null ? nothing : withoutFaults(before, after);
  const rules: readonly KindRule[] = rulesOf[resource] ?? [];
  for (const { kind, holds } of rules) if (holds(former, after)) kinds.push(kind);
  return kinds.map((kind) => `${resource}.${kind}`);
}

/** Columns that are read from the object's own state, and change with it alone. */
const ofState = ["status", "plan_id", "current_billing_cycle"] as const;

/**
 * A row's former columns, as its state has them. Where the state has not changed, columns that differ were wrong and
 * are corrected: nothing has happened at the service.
 */
function withoutFaults(before: Watched, after: Watched): Watched {
  const { content_hash: hash = null } = before;
  if (hash === null || hash !== after["content_hash"]) return before;
  const right: Record<string, string | null> = { ...before };
  for (const column of ofState) if (column in right) right[column] = after[column] ?? null;
  return right;
}

/**
 * When an object that was unknown before got into the state that shows this kind. A first charge is made with the
 * object; all else is as late as its state. Null where it is unknown. Fixed form.
 */
export function kindHappenedAt(
  kind: string,
  { createdAt, updatedAt }: { createdAt: string | null; updatedAt: string | null },
): string | null {
  const isOfBeginning = /\.(?:created|paid|started)$/.test(kind);
  return isOfBeginning ? (createdAt ?? updatedAt) : updatedAt;
}

interface KindRule {
  kind: string;
  /** `before` has no columns where the row is new. */
  holds(before: Watched, after: Watched): boolean;
}

const nothing: Watched = {};

const becomes = (status: string): KindRule => ({
  kind: status,
  holds: (before, after) => after["status"] === status && before["status"] !== status,
});

/** A status that a subscription has left in between, proved by a further paid cycle. */
const becomesAgain = (status: string): KindRule => ({
  kind: status,
  holds: (before, after) => after["status"] === status && (before["status"] !== status || isRenewed(before, after)),
});

const isOne = ({ status = null }: Watched, statuses: readonly string[]): boolean =>
  status !== null && statuses.includes(status);

/** A status that the interface does not name: what went before it is not known. */
const isUnnamed = ({ status = null }: Watched, names: readonly string[]): boolean =>
  status !== null && !names.includes(status);

const number = (text: string | null | undefined): number => Number(text ?? 0);

/** An order that was paid may have come any way since. */
const paid = [
  "succeeded",
  "partially_refunded",
  "refunded",
  "refund_failed",
  "chargeback",
  "chargeback_accepted",
  "chargeback_dismissed",
];

const orderRules: readonly KindRule[] = [
  {
    // An order with an unnamed status may have been paid long ago, so what follows on a payment does not prove it.
    kind: "paid",
    holds: (before, after) =>
      isOne(after, paid) &&
      !isOne(before, paid) &&
      (after["status"] === "succeeded" || !isUnnamed(before, orderStatuses)),
  },
  {
    // Also each further decline: the attempts of a renewal are counted. A read shows the status without the count, and
    // the event of the first decline may follow it.
    kind: "failed",
    holds: (before, after) =>
      after["status"] === "failed" &&
      (before["status"] !== "failed" || number(after["attempt_count"]) > Math.max(1, number(before["attempt_count"]))),
  },
  becomes("voided"),
];

/** A subscription whose first charge was cleared. One that was canceled may have failed before. */
const started = ["active", "paused", "past_due", "completed"];

/**
 * Whether a cycle after the first was paid in between. The interface does not say whether a cycle counts once it is
 * charged or once it is paid. So where the last charge may have been declined, one more cycle proves nothing; after a
 * declined one it does, since no other is charged before that is paid.
 */
function isRenewed(before: Watched, after: Watched): boolean {
  const [from, to] = [before, after].map((row) => number(row["current_billing_cycle"]));
  if (from === undefined || to === undefined || from === 0) return false;
  const isPaid = isOne(after, ["active", "paused", "completed"]) || isOne(before, ["past_due"]);
  return to > from + (isPaid ? 0 : 1);
}

/** Only an active subscription is billed, paused and completed; a canceled one keeps its state. */
const subscriptionRules: readonly KindRule[] = [
  {
    kind: "started",
    holds: (before, after) =>
      isOne(after, started) &&
      ((before["status"] ?? "failed") === "failed" ||
        (isUnnamed(before, subscriptionStatuses) && number(before["current_billing_cycle"]) === 0)),
  },
  {
    // Also one that had ended, which the interface does not foresee.
    kind: "resumed",
    holds: (before, after) =>
      (isOne(before, ["paused", "canceled", "completed"]) && isOne(after, ["active", "past_due"])) ||
      (isOne(before, ["paused"]) && (isOne(after, ["completed"]) || isRenewed(before, after))),
  },
  { kind: "renewed", holds: isRenewed },
  {
    // The cycle that was recovered, or one right after it, may be the last: then the subscription is completed
    // immediately.
    kind: "recovered",
    holds: (before, after) =>
      isOne(before, ["past_due"]) && (isOne(after, ["active", "paused"]) || isRenewed(before, after)),
  },
  {
    kind: "plan_changed",
    holds: ({ plan_id: from = null }, { plan_id: to = null }) => from !== null && to !== null && from !== to,
  },
  becomesAgain("past_due"),
  becomesAgain("paused"),
  becomes("canceled"),
  becomes("completed"),
];

const rulesOf: Partial<Record<Resource, readonly KindRule[]>> = {
  order: orderRules,
  subscription: subscriptionRules,
  customer: [
    {
      kind: "deleted",
      holds: (before, after) => (before["deleted_at"] ?? null) === null && (after["deleted_at"] ?? null) !== null,
    },
  ],
};

/** An event in an object's life that stays true after any later state. */
export interface Fact {
  resource: Resource;
  id: string;
  kind: ChangeKind;
  /** The refund's transaction; when a dispute was opened again; '' of the first, and where there is one at most. */
  subject: string;
  amount: number | null;
  currency: string | null;
}

/** A state as far as facts need it. */
export interface FactSource {
  group: string;
  id: string;
  json: string;
  columns: Readonly<Record<string, unknown>>;
}

/**
 * The refund or the dispute that a state shows. The knowledge about an object is the union over all of its states, late
 * ones among them, so the order of arrival does not matter. A dispute that just disappears from the status has no
 * outcome here: only a state that names it has.
 */
export function factsOf({ group, id, json, columns }: FactSource): Fact[] {
  if (group === "order") {
    const kinds = disputes.get(String(columns["status"])) ?? [];
    const once = { resource: "order", id, subject: "", amount: null, currency: null } as const;
    return kinds.map((kind) => ({ ...once, kind }));
  }
  const isRefund = group.startsWith("transaction") && columns["type"] === "refund";
  return isRefund ? refundOf(id, json, columns) : [];
}

const disputes = new Map<string, readonly ChangeKind[]>([
  ["chargeback", ["order.disputed"]],
  ["chargeback_accepted", ["order.disputed", "order.dispute_lost"]],
  ["chargeback_dismissed", ["order.disputed", "order.dispute_won"]],
]);

/** Maps the status of the refund's transaction. */
const refunds = new Map<string, ChangeKind>([
  ["succeeded", "order.refunded"],
  ["failed", "order.refund_failed"],
]);

/**
 * Whether the row that showed a fact had shown it before the write: it is already in the feed, or happened before the
 * feed began.
 */
export function isShownBefore(fact: Fact, before: Watched | null): boolean {
  const status = before?.["status"] ?? "";
  return isDispute(fact) ? (disputes.get(status) ?? []).includes(fact.kind) : refunds.get(status) === fact.kind;
}

/** A dispute or its end. */
export const isDispute = ({ kind }: Pick<Fact, "kind">): boolean => kind.startsWith("order.dispute");

function refundOf(id: string, json: string, columns: FactSource["columns"]): Fact[] {
  const { status, order_id: order } = JSON.parse(json) as Record<string, unknown>;
  const kind = refunds.get(String(status));
  if (kind === undefined || typeof order !== "string") return [];
  const { amount, currency } = columns;
  return [
    {
      resource: "order",
      id: order,
      kind,
      subject: id,
      // The interface leaves open whether a refund's amount is negative.
      amount: typeof amount === "number" ? Math.abs(amount) : null,
      currency: typeof currency === "string" ? currency : null,
    },
  ];
}
