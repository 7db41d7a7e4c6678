import { dayIn } from "../../../platform/local-time.ts";
import { counted } from "../../../platform/readable-text.ts";
import { sums } from "../../../app/dashboard/elements/values.ts";
import type { Reason, Summary } from "../../../app/dashboard/page-group.ts";
import type { BoardCard } from "./board.ts";
import { type DunningParts, readCards, readUnpaid } from "./read-board.ts";

/** The home card of dunning: the amount at stake, today's retries, and unassigned renewals. */
export const dunningSummary = (parts: DunningParts): Summary => ({
  access: "status:read",
  async read(deps) {
    const settings = await parts.settings();
    const { cards: unpaid } = await readCards(deps, settings, [await readUnpaid(deps)]);
    const today = dayIn(deps.timeZone, deps.serviceClock.now());
    const dueToday = unpaid.filter(
      ({ nextRetryAt }) => nextRetryAt instanceof Date && dayIn(deps.timeZone, nextRetryAt) === today,
    );
    const reasons = reasonsOf(unpaid, settings.withinHours);
    return {
      title: "Dunning",
      path: "/dunning",
      tile: "Money",
      count: unpaid.length,
      tone: reasons.length > 0 ? "warn" : unpaid.length > 0 ? "calm" : "good",
      headline: unpaid.length === 0 ? "No renewals" : counted(unpaid.length, "renewal"),
      facts:
        unpaid.length === 0
          ? []
          : [
              { name: "At stake", value: sums(unpaid) },
              { name: "Falls due today", value: sums(dueToday) },
            ],
      reasons,
    };
  },
});

function reasonsOf(unpaid: readonly BoardCard[], withinHours: number): Reason[] {
  const open = unpaid.filter(({ current }) => current.assignee === null);
  const near = open.filter(({ stage }) => stage === "last-retry").length;
  const lost = open.filter(({ stage }) => stage === "final").length;
  return [
    ...(near === 0
      ? []
      : [reason(`${counted(near, "renewal")} without an assignee: the last retry is within ${withinHours} hours.`)]),
    ...(lost === 0 ? [] : [reason(`${counted(lost, "renewal")} with no retry left and without an assignee.`)]),
  ];
}

const reason = (text: string): Reason => ({ text, path: "/dunning?who=unassigned", next: "Assign" });
