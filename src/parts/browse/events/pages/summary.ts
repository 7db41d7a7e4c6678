import { type Backlog, type BoundedCount, readBacklog } from "../../../../core/inbox/backlog.ts";
import { countAnswers } from "../../../../core/receiver/counters.ts";
import { type Receivers, readReceivers } from "../../../../core/receiver/heartbeats.ts";
import { counted, durationText } from "../../../../platform/readable-text.ts";
import type { SummaryCard } from "../../../../app/dashboard/page-group.ts";
import type { PageDeps } from "../../../../app/dashboard/route.ts";

const dayMs = 86_400_000;
/** A worker needs seconds. */
const lateAfterMs = 60_000;

/** The receivers and the inbox at a glance. Three statements. */
export async function readEventSummary({ db, clock }: PageDeps): Promise<SummaryCard> {
  const now = clock.now();
  const backlog = await readBacklog(db);
  const answers = await countAnswers(db, { from: new Date(now.getTime() - dayMs), until: now });
  const receivers = await readReceivers(db);
  return summaryOf({ backlog, receivers, receivedInADay: answers.get("accepted") ?? 0, now });
}

interface Glance {
  backlog: Backlog;
  receivers: Receivers;
  receivedInADay: number;
  now: Date;
}

function summaryOf({ backlog, receivers, receivedInADay, now }: Glance): SummaryCard {
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
          "No receiver takes " +
            `webhooks${presence.unready > 0 ? ": those that run cannot store events" : ": none runs"}. The last one ` +
            `could ${ageText(presence.lastReadyAt)}.`,
        ]
      : []),
    ...(isLate
      ? [
          `${countedTo(waiting, "event waits", "events wait")} to be applied, the oldest for ` +
            `${durationText(lagMs)}: check that a worker runs.`,
        ]
      : []),
    ...(dead.n > 0 ? [`${countedTo(dead, "event is", "events are")} dead: fix the cause, then replay.`] : []),
  ];
  return {
    title: "Events",
    path: dead.n > 0 ? "/events?state=dead" : "/events",
    tone: isDeaf || dead.n > 0 ? "bad" : isLate ? "bad" : failed.n > 0 ? "warn" : "good",
    headline: isDeaf
      ? "No receiver"
      : isLate
        ? `${durationText(lagMs)} behind`
        : dead.n > 0
          ? `${countText(dead)} dead`
          : "Up to date",
    facts: [
      { name: "Received in 24 hours", value: receivedInADay },
      { name: "Last webhook", value: ageText(lastWebhookAt) },
      { name: "Last answered", value: ageText(lastAnswerAt) },
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
