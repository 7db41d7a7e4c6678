import { type Backlog, type BoundedCount, readBacklog } from "../../../../core/inbox/backlog.ts";
import { type Receivers, readReceivers } from "../../../../core/receiver/heartbeats.ts";
import { reasonInWords } from "../../../../core/worker/reason-words.ts";
import { counted, durationText } from "../../../../platform/readable-text.ts";
import { runbook } from "../../../../app/dashboard/elements/runbook.ts";
import type { SummaryCard } from "../../../../app/dashboard/page-group.ts";
import { timeText } from "../../../../app/dashboard/elements/values.ts";
import type { PageDeps } from "../../../../app/dashboard/route.ts";

const deadPath = "/events?state=dead";
/** A worker needs seconds. */
const lateAfterMs = 60_000;

/** The receivers and the inbox at a glance. Two statements. */
export async function readEventSummary({ db, clock, timeZone }: PageDeps): Promise<SummaryCard> {
  const now = clock.now();
  const backlog = await readBacklog(db);
  const receivers = await readReceivers(db);
  return summaryOf({ backlog, receivers, now, timeZone });
}

interface Glance {
  backlog: Backlog;
  receivers: Receivers;
  now: Date;
  timeZone: string;
}

function summaryOf({ backlog, receivers, now, timeZone }: Glance): SummaryCard {
  const { presence, lastAnswerAt, lastWebhookAt } = receivers;
  const { waitingSince, waiting, failed, dead, deadReasons } = backlog;
  const lagMs = waitingSince === null ? 0 : now.getTime() - waitingSince.getTime();
  const isLate = lagMs > lateAfterMs;
  const isDeaf = presence?.isAbsent === true;
  const ageText = (at: Date | null) =>
    at === null ? "never" : `${durationText(receivers.now.getTime() - at.getTime())} ago`;
  const reasons = [
    ...(isDeaf
      ? [
          {
            text:
              `No receiver has answered since ${timeText(presence.lastReadyAt, timeZone)}: ` +
              `${presence.unready > 0 ? "those that run cannot store events" : "none runs"}.`,
            ...runbook("receiver_absent"),
          },
        ]
      : []),
    ...(isLate
      ? [
          {
            text:
              `${countedTo(waiting, "event waits", "events wait")} to be applied, the oldest for ` +
              `${durationText(lagMs)}: check that a worker runs.`,
            ...runbook("TallyhookNotApplied"),
          },
        ]
      : []),
    ...(dead.n > 0
      ? [
          {
            text:
              `${countedTo(dead, "event is", "events are")} dead: fix the cause, then replay. ` +
              deadReasons.slice(0, 2).map(deadReasonText).join(" "),
            path: deadPath,
            next: "See why",
          },
        ]
      : []),
  ];
  return {
    title: "Events",
    path: dead.n > 0 ? deadPath : "/events",
    tile: "Webhooks",
    top: { stat: lastWebhookAt === null ? "None yet" : ageText(lastWebhookAt), about: "Last webhook" },
    count: dead.isMore ? null : dead.n,
    tone: isDeaf || dead.n > 0 ? "bad" : isLate ? "bad" : failed.n > 0 ? "warn" : "good",
    headline: isDeaf
      ? "No receiver"
      : isLate
        ? `${durationText(lagMs)} behind`
        : dead.n > 0
          ? `${countText(dead)} dead`
          : "Up to date",
    facts: [
      { name: "Waiting", value: countText(waiting) },
      { name: "Tried again soon", value: countText(failed) },
      ...(isLate || dead.n === 0 ? [{ name: "Dead", value: countText(dead) }] : []),
      ...(lastAnswerAt === null ? [] : [{ name: "Last answered", value: ageText(lastAnswerAt) }]),
    ],
    reasons,
  };
}

/** A reason in words, with the number of events that have it where it is not the only one. */
const deadReasonText = ({ reason, n }: Backlog["deadReasons"][number]): string => {
  const words = reasonInWords(reason) ?? `${(reason ?? "no reason").slice(0, 80)}.`;
  return n === 1 ? words : `${words} (${n} times)`;
};

const countText = ({ n, isMore }: BoundedCount): string => (isMore ? `more than ${n}` : String(n));

const countedTo = ({ n, isMore }: BoundedCount, one: string, many: string): string =>
  isMore ? `More than ${n} ${many}` : counted(n, one, many);
