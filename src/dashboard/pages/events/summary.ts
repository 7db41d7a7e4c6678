import { type Backlog, type BoundedCount, readBacklog } from "../../../inbox/backlog.ts";
import { countAnswers } from "../../../receiver/counters.ts";
import { counted, durationText } from "../../../platform/readable-text.ts";
import type { SummaryCard } from "../../page-group.ts";
import type { PageDeps } from "../../route.ts";

const dayMs = 86_400_000;
/** A worker takes seconds. */
const lateAfterMs = 60_000;

/** The inbox at a glance. Two statements. */
export async function readEventSummary({ db, clock }: PageDeps): Promise<SummaryCard> {
  const now = clock.now();
  const backlog = await readBacklog(db);
  const answers = await countAnswers(db, { from: new Date(now.getTime() - dayMs), until: now });
  return summaryOf(backlog, answers.get("accepted") ?? 0, now);
}

/** Pure. */
function summaryOf(backlog: Backlog, receivedInADay: number, now: Date): SummaryCard {
  const { waitingSince, waiting, failed, dead, deadReasons } = backlog;
  const lagMs = waitingSince === null ? 0 : now.getTime() - waitingSince.getTime();
  const isLate = lagMs > lateAfterMs;
  const reasons = [
    ...(isLate
      ? [
          `${countedTo(waiting, "event waits", "events wait")} to be applied, the oldest for ${durationText(lagMs)}: look whether a worker runs.`,
        ]
      : []),
    ...(dead.n > 0
      ? [`${countedTo(dead, "event is", "events are")} dead: mend the cause, then replay.`]
      : []),
  ];
  return {
    title: "Events",
    path: dead.n > 0 ? "/events?state=dead" : "/events",
    tone: dead.n > 0 ? "bad" : isLate ? "bad" : failed.n > 0 ? "warn" : "good",
    headline: isLate
      ? `${durationText(lagMs)} behind`
      : dead.n > 0
        ? `${countText(dead)} dead`
        : "Up to date",
    facts: [
      { name: "Received in 24 hours", value: receivedInADay },
      { name: "Waiting", value: countText(waiting) },
      { name: "Tried again soon", value: countText(failed) },
      ...(isLate || dead.n === 0 ? [{ name: "Dead", value: countText(dead) }] : []),
      ...deadReasons.slice(0, 3).map(({ reason, n }) => ({
        name: "Dead for",
        value: `${(reason ?? "no reason").slice(0, 80)} (${n})`,
      })),
    ],
    reasons,
  };
}

const countText = ({ n, isMore }: BoundedCount): string => (isMore ? `more than ${n}` : String(n));

const countedTo = ({ n, isMore }: BoundedCount, one: string, many: string): string =>
  isMore ? `More than ${n} ${many}` : counted(n, one, many);
