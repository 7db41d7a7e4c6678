import type { Knex } from "knex";
import { type Lag, readLag } from "../../../core/inbox/lag.ts";
import { answersByHour, countAnswers } from "../../../core/receiver/counters.ts";
import type { SecretOverview } from "../../../core/receiver/secrets-overview.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { counted } from "../../../platform/readable-text.ts";
import type { PageGroup, SummaryCard } from "../../../app/dashboard/page-group.ts";
import type { PageDeps } from "../../../app/dashboard/route.ts";
import { createSlowReads, slowMs } from "../../../app/dashboard/elements/slow-reads.ts";
import { sparkline } from "../../../app/dashboard/elements/sparkline.ts";
import { timesOf } from "./answers.ts";
import { arrivalFigures, takenByHour } from "./arrivals.ts";
import { renderDeliveries } from "./delivery-view.ts";
import type { StatementFound } from "./statement.ts";

const dayMs = 86_400_000;
/** A secret may be safe to retire after so many hours without use, as on the command line. */
const quietHours = 48;

export interface DeliveryTools {
  secrets(db: Knex, quietHours: number): Promise<SecretOverview[]>;
  /** Null: this deployment has no reports. */
  statement: ((db: Knex, now: Date) => Promise<StatementFound>) | null;
}

/** Incoming webhooks: their number, delay and secrets. */
export function deliveryPages(tools: DeliveryTools): PageGroup {
  const lags = createSlowReads<"week", Lag>(slowMs.sums);
  return {
    place: { path: "/deliveries", name: "Deliveries", access: "status:read", area: "Plumbing" },
    routes: [
      {
        method: "GET",
        path: "/deliveries",
        access: "status:read",
        async answer(deps, { visitor }) {
          const { db, clock, timeZone } = deps;
          const now = clock.now();
          const since = (days: number) => ({
            from: new Date(now.getTime() - days * dayMs),
            until: new Date(now.getTime() + dayMs),
          });
          const maySeeSecrets = visitor.permissions.has("secret:read");
          return {
            kind: "page",
            title: "Deliveries",
            body: renderDeliveries({
              day: await countAnswers(db, since(1)),
              week: await countAnswers(db, since(7)),
              figures: arrivalFigures(await answersByHour(db, since(7)), { now, timeZone }),
              lag: await lags(deps, "week", () => readLag(db, { from: since(7).from, timeZone })),
              statement: tools.statement === null ? null : await tools.statement(db, now),
              secrets: maySeeSecrets ? await tools.secrets(db, quietHours) : null,
              quietHours,
              timeZone,
            }),
            ...(maySeeSecrets ? { command: tallyhook("secrets list") } : {}),
          };
        },
      },
    ],
    summary: { access: "status:read", read: readDeliverySummary },
  };
}

async function readDeliverySummary({ db, clock }: PageDeps): Promise<SummaryCard> {
  const now = clock.now();
  const day = { from: new Date(now.getTime() - dayMs), until: new Date(now.getTime() + dayMs) };
  const [answers, hours] = [await countAnswers(db, day), await answersByHour(db, day)];
  const [accepted, refused] = [timesOf(answers, "accepted"), timesOf(answers, "refused")];
  const unstored = (answers.get("unavailable") ?? 0) + (answers.get("failed") ?? 0);
  const unmatched = (answers.get("no_match") ?? 0) + (answers.get("no_secret") ?? 0);
  const reasons = [
    ...(unstored > 0
      ? [
          {
            text:
              `${counted(unstored, "delivery", "deliveries")} could not be stored at the first attempt in the last 24 ` +
              "hours; the service sends them again.",
            path: "/deliveries",
            next: "See when",
          },
        ]
      : []),
    // Others than the service knock as well, so refusals alone are no news.
    ...(unmatched > 0 && accepted === 0
      ? [
          {
            text:
              `Every delivery of the last 24 hours was refused for its signature, ${unmatched} in all: compare the ` +
              "secrets with the service.",
            path: "/deliveries#secrets",
            next: "See the secrets",
          },
        ]
      : []),
  ];
  return {
    title: "Deliveries",
    path: "/deliveries",
    tone: unmatched > 0 && accepted === 0 ? "bad" : unstored > 0 ? "warn" : "good",
    tile: "Webhooks",
    headline: `${accepted} in 24 hours`,
    figure: sparkline(takenByHour(hours, now), `Webhooks in each of the last 24 hours: ${accepted} new in all`),
    facts: [
      { name: "Repeats", value: timesOf(answers, "duplicate") },
      { name: "Refused", value: refused },
    ],
    reasons,
  };
}
