import type { Resource } from "../snapshot.ts";

/** The watched columns of a row (`MirrorResource.watched`), as text. */
export type Watched = Readonly<Record<string, string | null>>;

/** What a write did to a row. */
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
 * The kinds of change that a write of a row was, in the order in which they happened. Empty where the row changed in
 * nothing that has a name: the caller says `updated` unless something else is told of the object. Refunds and disputes
 * are told by `factsOf`. Pure.
 */
export function kindsOf(resource: Resource, { before, after }: Transition): string[] {
  const kinds = before === null ? ["created"] : [];
  const rules: readonly KindRule[] = rulesOf[resource] ?? [];
  for (const { kind, holds } of rules) if (holds(before ?? nothing, after)) kinds.push(kind);
  return kinds.map((kind) => `${resource}.${kind}`);
}

interface KindRule {
  kind: string;
  /** `before` has no columns where the row is new. */
  holds(before: Watched, after: Watched): boolean;
}

const nothing: Watched = {};

const becomes = (kind: string, ...statuses: readonly string[]): KindRule => ({
  kind,
  holds: (before, after) => isOne(after, statuses) && !isOne(before, statuses),
});

const goes = (kind: string, from: string, to: string): KindRule => ({
  kind,
  holds: (before, after) => before["status"] === from && after["status"] === to,
});

const isOne = ({ status = null }: Watched, statuses: readonly string[]): boolean =>
  status !== null && statuses.includes(status);

const number = (text: string | null | undefined): number => Number(text ?? 0);

const isLaterCycle = (before: Watched, after: Watched): boolean =>
  number(after["current_billing_cycle"]) > number(before["current_billing_cycle"]);

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
/** A subscription whose first charge was cleared. One that was canceled may have failed before. */
const started = ["active", "paused", "past_due", "completed"];

const rulesOf: Partial<Record<Resource, readonly KindRule[]>> = {
  order: [
    becomes("paid", ...paid),
    {
      // Also each further decline: the attempts of a renewal are counted. A read shows the status without the count, and
      // the event of the first decline may follow it.
      kind: "failed",
      holds: (before, after) =>
        after["status"] === "failed" &&
        (before["status"] !== "failed" ||
          number(after["attempt_count"]) > Math.max(1, number(before["attempt_count"]))),
    },
    becomes("voided", "voided"),
  ],
  subscription: [
    {
      kind: "started",
      holds: (before, after) =>
        isOne(after, started) && (before["status"] ?? "failed") === "failed",
    },
    {
      kind: "renewed",
      holds: (before, after) =>
        isOne(after, ["active", "completed"]) &&
        number(before["current_billing_cycle"]) > 0 &&
        isLaterCycle(before, after),
    },
    becomes("past_due", "past_due"),
    {
      // The cycle that was recovered, or one right after it, may be the last: then it is completed at once.
      kind: "recovered",
      holds: (before, after) =>
        before["status"] === "past_due" &&
        (after["status"] === "active" ||
          (after["status"] === "completed" && isLaterCycle(before, after))),
    },
    becomes("paused", "paused"),
    goes("resumed", "paused", "active"),
    {
      kind: "plan_changed",
      holds: ({ plan_id: from = null }, { plan_id: to = null }) =>
        from !== null && to !== null && from !== to,
    },
    becomes("canceled", "canceled"),
    becomes("completed", "completed"),
  ],
  customer: [
    {
      kind: "deleted",
      holds: (before, after) =>
        (before["deleted_at"] ?? null) === null && (after["deleted_at"] ?? null) !== null,
    },
  ],
};

/** Something that happened to an object once and for all, whatever states followed. */
export interface Fact {
  resource: Resource;
  id: string;
  kind: ChangeKind;
  /** The refund's transaction; '' where an object has one such fact at most. */
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
 * The refund or the dispute that a state shows. What is known of an object is the union over all of its states, late
 * ones among them, so the order of arrival does not matter. A dispute that just disappears from the status has no
 * outcome here: only a state that names it has. Pure.
 */
export function factsOf({ group, id, json, columns }: FactSource): Fact[] {
  if (group === "order") {
    const kinds = disputes[String(columns["status"])] ?? [];
    const once = { resource: "order", id, subject: "", amount: null, currency: null } as const;
    return kinds.map((kind) => ({ ...once, kind }));
  }
  const isRefund = group.startsWith("transaction") && columns["type"] === "refund";
  return isRefund ? refundOf(id, json, columns) : [];
}

const disputes: Readonly<Record<string, readonly ChangeKind[]>> = {
  chargeback: ["order.disputed"],
  chargeback_accepted: ["order.disputed", "order.dispute_lost"],
  chargeback_dismissed: ["order.disputed", "order.dispute_won"],
};

/** Whether the row that showed a fact had shown it before the write: it was told, or happened before there was a feed. */
export const isShownBefore = ({ kind }: Fact, before: Watched | null): boolean =>
  kind === "order.refunded"
    ? before?.["status"] === "succeeded"
    : (disputes[before?.["status"] ?? ""] ?? []).includes(kind);

function refundOf(id: string, json: string, columns: FactSource["columns"]): Fact[] {
  const { status, order_id: order } = JSON.parse(json) as Record<string, unknown>;
  if (status !== "succeeded" || typeof order !== "string") return [];
  const { amount, currency } = columns;
  return [
    {
      resource: "order",
      id: order,
      kind: "order.refunded",
      subject: id,
      amount: typeof amount === "number" ? amount : null,
      currency: typeof currency === "string" ? currency : null,
    },
  ];
}
