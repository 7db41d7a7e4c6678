import { countLate } from "../outbox/outbox.ts";
import { listSilences } from "../silences.ts";
import { type UnresolvedCount, countUnresolved } from "../store.ts";
import { counted } from "../../../platform/readable-text.ts";
import { runbook } from "../../../app/dashboard/elements/runbook.ts";
import type { Reason, Summary, SummaryCard } from "../../../app/dashboard/page-group.ts";

const most = 1_001;

/** The home card of alerts. It shows silenced ones, too. */
export const alertsSummary: Summary = {
  access: "status:read",
  async read({ db }) {
    const [counts, late, silences] = await Promise.all([
      countUnresolved(db, { most }),
      countLate(db, { most }),
      listSilences(db, { limit: most }),
    ]);
    return cardOf(counts, { late, silences: silences.length });
  },
};

export function cardOf(
  counts: readonly UnresolvedCount[],
  { late, silences }: { late: number; silences: number },
): SummaryCard {
  const sum = counts.reduce((all, { alerts }) => all + alerts, 0);
  const untaken = counts.filter(({ severity, open }) => open > 0 && isUrgent(severity));
  const isBad = late > 0 || untaken.some(({ severity }) => severity === "critical");
  return {
    title: "Alerts",
    path: "/alerts",
    count: sum < most ? sum : null,
    tone: isBad ? "bad" : untaken.length > 0 ? "warn" : "good",
    headline: sum === 0 ? "None open" : `${upTo(sum)} not resolved`,
    facts: [
      ...counts.map(({ severity, alerts, silenced }) => ({
        name: `${severity.charAt(0).toUpperCase()}${severity.slice(1)}`,
        value: silenced === 0 ? upTo(alerts) : `${upTo(alerts)}, ${upTo(silenced)} silenced`,
      })),
      ...(late === 0 ? [] : [{ name: "Messages not sent", value: upTo(late) }]),
      ...(silences === 0 ? [] : [{ name: "Silences in force", value: upTo(silences) }]),
    ],
    reasons: [...untaken.map(reasonOf), ...(late === 0 ? [] : [lateReason(late)])],
  };
}

const isUrgent = (severity: UnresolvedCount["severity"]): boolean => severity === "critical" || severity === "error";

const upTo = (n: number): string => (n < most ? String(n) : `more than ${most - 1}`);

function reasonOf({ severity, open }: UnresolvedCount): Reason {
  const of = severity === "critical" ? "critical alert" : "alert of severity error";
  const many = severity === "critical" ? "critical alerts" : "alerts of severity error";
  return {
    text: `${counted(upTo(open), `${of} is`, `${many} are`)} open and not acknowledged.`,
    path: `/alerts?severity=${severity}`,
    next: "See them",
  };
}

const lateReason = (late: number): Reason => ({
  text:
    `${counted(upTo(late), "message of an alert is", "messages of alerts are")} more than five minutes late: no ` +
    "worker sends, or a channel is down.",
  ...runbook("TallyhookAlertsNotSent"),
});
