import type { Knex } from "knex";
import { tallyhook } from "../../../platform/command-line.ts";
import { acknowledging, resending } from "../acts.ts";
import { alertList } from "../alert-list.ts";
import { runbookOf } from "../message.ts";
import { listSilences, silencesSince } from "../silences.ts";
import { type AlertDetails, type AlertRow, countUnresolved, findAlert, isAlert } from "../store.ts";
import { recordAct } from "../../../app/people/audit.ts";
import { type Html, html } from "../../../platform/html.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { counted, oneLine } from "../../../platform/readable-text.ts";
import { actRoute } from "../../../app/dashboard/act-route.ts";
import type { PageGroup } from "../../../app/dashboard/page-group.ts";
import { caseRoutes } from "../../../app/dashboard/elements/case-routes.ts";
import { readCaseView } from "../../../app/dashboard/elements/case.ts";
import { severityState } from "../../../app/dashboard/elements/values.ts";
import { listRoute } from "../../../app/dashboard/list-route.ts";
import { type PageDeps, PageError, type Route } from "../../../app/dashboard/route.ts";
import { renderAlert } from "./alert-view.ts";
import { alertState, sightOf, titleOf } from "./alert-words.ts";
import { renderAlerts, renderCounts } from "./list-view.ts";
import { type AlertActDeps, silenceRoutes } from "./silence-routes.ts";
import { alertsSummary } from "./summary.ts";

const alertPath = "/alerts/:id";
const mostCounted = 1_001;

/** Given up so long ago at most; older messages are removed. */
const withinHours = 8_784;

const routesOf = ({ runbooksUrl, deps }: AlertPages): readonly Route[] => [
  listRoute({
    list: alertList,
    title: "Alerts",
    access: "status:read",
    async head({ db }) {
      const [counts, silences] = await Promise.all([
        countUnresolved(db, { most: mostCounted }),
        listSilences(db, { limit: 100 }),
      ]);
      return renderCounts({ counts, mostCounted, silences: silences.length });
    },
    table: (rows, { timeZone }, { query, visitor }) =>
      renderAlerts(rows, { isFiltered: query.size > 0, sight: sightOf(visitor.permissions), timeZone }),
  }),
  ...silenceRoutes({ deps, now: alertNow }),
  {
    method: "GET",
    path: alertPath,
    access: "status:read",
    async answer(deps, request) {
      const { db, clock, timeZone } = deps;
      const { params, visitor, actor } = request;
      const alert = await requireAlert(db, params["id"] ?? "");
      const sight = sightOf(visitor.permissions);
      const silences = await silencesSince(db, alert, alert.opened_at);
      const isWrittenOn = alert.acknowledged_note !== null || silences.some(({ reason }) => reason !== null);
      if (sight.people && (alert.messages.length > 0 || isWrittenOn)) {
        const subject = { kind: "alert", id: alert.id };
        await inTransaction(db, (trx) => recordAct(trx, actor, { action: "alert.read", subject }));
      }
      return {
        kind: "page",
        title: sight.texts ? oneLine(titleOf(alert), 200) : `Alert ${alert.id}: ${alert.rule}`,
        body: renderAlert({
          alert,
          caseView: await readCaseView(deps, request, { kind: "alert", id: alert.id }, alertPath),
          silences,
          runbook: runbookOf(alert.rule, runbooksUrl),
          sight,
          mayWrite: visitor.permissions.has("alert:write"),
          now: clock.now(),
          timeZone,
        }),
        command: tallyhook(`alerts show ${alert.id}`),
      };
    },
  },
  actRoute({
    act: acknowledging,
    path: "/alerts/:alert/acknowledge",
    deps,
    back: ({ alert }) => `/alerts/${alert}`,
    now: alertNow,
    done: ({ id, outcome }) => ({
      to: `/alerts/${id}`,
      notice: outcome === "already" ? "It was acknowledged already." : "You own this alert now.",
    }),
  }),
  actRoute({
    act: resending,
    path: "/alerts/:alert/resend",
    deps,
    given: { message: null, channel: null, hours: withinHours },
    back: ({ alert }) => `/alerts/${alert}`,
    now: messagesNow,
    done: ({ messages }, { alert }) => ({ to: `/alerts/${alert}`, notice: sentAgain(messages) }),
  }),
  actRoute({
    act: resending,
    path: "/alerts/:alert/messages/:message/resend",
    deps,
    given: { channel: null, hours: withinHours },
    back: ({ alert }) => `/alerts/${alert}`,
    now: messagesNow,
    done: ({ messages }, { alert }) => ({ to: `/alerts/${alert}`, notice: sentAgain(messages) }),
  }),
  ...caseRoutes({
    kind: "alert",
    path: alertPath,
    async exists({ db }, id) {
      const number = numberOf(id);
      return number !== null && isAlert(db, number);
    },
  }),
];

interface AlertPages {
  /** The address of the runbooks; null: their path. */
  runbooksUrl: string | null;
  deps: AlertActDeps;
}

/** Alerts, their assignees, and waiting messages. */
export const alertPages = (pages: AlertPages): PageGroup => ({
  place: { path: "/alerts", name: "Alerts", access: "status:read", area: "Plumbing" },
  routes: routesOf(pages),
  summary: alertsSummary,
});

/** In its one spelling: notes on an alert are stored under this text. */
const numberOf = (id: string): number | null => (/^[1-9]\d{0,14}$/.test(id) ? Number(id) : null);

const noAlert = (id: string): PageError =>
  new PageError(404, `There is no alert number ${id.slice(0, 40)}. Old ones are removed.`);

async function requireAlert(db: Knex, id: string): Promise<AlertDetails> {
  const number = numberOf(id);
  const found = number === null ? null : await findAlert(db, number);
  if (found === null) throw noAlert(id);
  return found;
}

const alertNow = (now: unknown, { timeZone }: Pick<PageDeps, "timeZone">): Html => {
  const alert = now as AlertRow;
  return html`<p>
    Now: ${severityState(alert.severity)} ${alertState(alert, timeZone)}, stage ${alert.stage}
    ${alert.acknowledged_by !== null && html`, acknowledged by ${alert.acknowledged_by}`}
  </p>`;
};

const messagesNow = (now: unknown): Html =>
  html`<ul>
    ${(now as AlertDetails).messages.map(({ channel, stage, state }) => html`<li>${channel}, ${stage}: ${state}</li>`)}
  </ul>`;

const sentAgain = (messages: Readonly<Record<string, number>>): string => {
  const n = Object.values(messages).reduce((sum, each) => sum + each, 0);
  return `Workers send ${counted(n, "message")} again.`;
};
