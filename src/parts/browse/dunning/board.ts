import { type Case, untouched } from "../../../app/people/cases.ts";
import {
  type DeclineGroup,
  type DeclineRequest,
  declineGroupOf,
  requestOf,
} from "../../../core/mirror/dunning/decline-groups.ts";
import type { DeclinedRenewal } from "../../../core/mirror/dunning/renewals.ts";
import { type DunningSettings, type DunningStage, dunningStageOf } from "../../../core/mirror/dunning/stages.ts";
import { type CaseFilter, isCaseShown } from "../../../app/dashboard/elements/case-filter.ts";

/** A renewal as it stands on the board. */
export interface BoardCard extends DeclinedRenewal {
  stage: DunningStage;
  group: DeclineGroup;
  /** The request to people; null where it is paid. */
  request: DeclineRequest | "collect" | null;
  current: Case;
}

export const boardSorts = ["retry", "amount", "attempts", "newest"] as const;

export interface BoardFilter extends CaseFilter {
  stage: DunningStage | null;
  currency: string | null;
  group: DeclineGroup | null;
  sort: (typeof boardSorts)[number];
}

export function cardOf(
  renewal: DeclinedRenewal,
  current: Case | undefined,
  { settings, now }: { settings: DunningSettings; now: Date },
): BoardCard {
  const stage = renewal.recoveredAt === null ? dunningStageOf(renewal, settings, now) : "recovered";
  const group = declineGroupOf(renewal.failureCode);
  const contactsNow = renewal.attempts >= settings.contactAtAttempt;
  const asked = requestOf(group, { kind: "renewal", contactsNow });
  // No retry follows: what waited for one is now collected by hand.
  const isOver = stage === "final" && (asked === "wait" || asked === "contact");
  const request = stage === "recovered" ? null : isOver ? "collect" : asked;
  return { ...renewal, stage, group, request, current: current ?? untouched };
}

/** The cards that a filter shows, in its order. */
export function shownCards(
  cards: readonly BoardCard[],
  filter: BoardFilter,
  { own, now }: { own: number; now: Date },
): BoardCard[] {
  return cards
    .filter(
      ({ stage, group, currency, current }) =>
        (filter.stage === null || stage === filter.stage) &&
        (filter.group === null || group === filter.group) &&
        (filter.currency === null || currency === filter.currency) &&
        isCaseShown(current, filter, { own, now }),
    )
    .sort(orders[filter.sort]);
}

const timeOf = (at: Date | null | "unknown"): number => (at instanceof Date ? at.getTime() : Number.MAX_SAFE_INTEGER);

const byRetry = (a: BoardCard, b: BoardCard): number =>
  timeOf(a.nextRetryAt) - timeOf(b.nextRetryAt) ||
  timeOf(b.recoveredAt ?? new Date(0)) - timeOf(a.recoveredAt ?? new Date(0)) ||
  (a.orderId < b.orderId ? -1 : 1);

const orders: Readonly<Record<BoardFilter["sort"], (a: BoardCard, b: BoardCard) => number>> = {
  retry: byRetry,
  amount: (a, b) =>
    (a.currency ?? "").localeCompare(b.currency ?? "") ||
    Number((b.totalMinor ?? 0n) - (a.totalMinor ?? 0n)) ||
    byRetry(a, b),
  attempts: (a, b) => b.attempts - a.attempts || byRetry(a, b),
  newest: (a, b) => (b.lastDeclinedAt?.getTime() ?? 0) - (a.lastDeclinedAt?.getTime() ?? 0) || byRetry(a, b),
};

export const declineGroups: readonly DeclineGroup[] = [
  "soft",
  "card_data",
  "account_status",
  "fraud",
  "configuration",
  "unknown",
];
