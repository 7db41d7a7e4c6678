import type { Knex } from "knex";
import { quoted, tallyhook } from "../../../platform/command-line.ts";
import { acknowledging, resending } from "../acts.ts";
import { alertSeverities } from "../message.ts";
import { runbookOf } from "../runbook.ts";
import { ruleNames } from "../settings.ts";
import { listSilences, silencesSince } from "../silences.ts";
import {
  type AlertDetails,
  type AlertFilter,
  type AlertRow,
  alertStates,
  countUnresolved,
  findAlert,
  isAlert,
  listAlerts,
} from "../store.ts";
import { recordAct } from "../../../app/people/audit.ts";
import { type Html, html } from "../../../platform/html.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { counted } from "../../../platform/readable-text.ts";
import { actRoute } from "../../../app/dashboard/act-route.ts";
import type { PageGroup } from "../../../app/dashboard/page-group.ts";
import { caseRoutes } from "../../../app/dashboard/elements/case-routes.ts";
import { readCaseView } from "../../../app/dashboard/elements/case.ts";
import { pageOf } from "../../../app/dashboard/elements/paging.ts";
import { severityState } from "../../../app/dashboard/elements/values.ts";
import { type PageDeps, PageError, type Route } from "../../../app/dashboard/route.ts";
import { renderAlert } from "./alert-view.ts";
import { alertState, sightOf } from "./alert-words.ts";
import { renderAlerts, stateFilters } from "./list-view.ts";
import { type AlertActDeps, silenceRoutes } from "./silence-routes.ts";
import { alertsSummary } from "./summary.ts";

const pageSize = 50;
const alertPath = "/alerts/:id";
const mostCounted = 1_001;

/** Given up so long ago at most; older messages are removed. */
const withinHours = 8_784;

const routesOf = ({ runbooksUrl, deps }: AlertPages): readonly Route[] => [
  {
    method: "GET",
    path: "/alerts",
    access: "status:read",
    async answer({ db, timeZone }, { query, visitor }) {
      const filter = filterOf(query);
      const [rows, counts, silences] = await Promise.all([
        listAlerts(db, { ...filter, limit: pageSize + 1 }),
        countUnresolved(db, { most: mostCounted }),
        listSilences(db, { limit: 100 }),
      ]);
      return {
        kind: "page",
        title: "Alerts",
        body: renderAlerts({
          alerts: pageOf(rows, pageSize, ({ id }) => id),
          counts,
          mostCounted,
          silences: silences.length,
          rules: ruleNames,
          query,
          sight: sightOf(visitor.permissions),
          timeZone,
        }),
        command: commandOf(query, filter),
      };
    },
  },
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
        title: `Alert ${alert.id}`,
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
  place: { path: "/alerts", name: "Alerts", access: "status:read" },
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

/** Unreadable parameters are left out: the view then shows more, and the form shows the filter in force. */
function filterOf(query: URLSearchParams): Omit<AlertFilter, "limit"> {
  const state = stateFilters.find((known) => known === query.get("state"));
  const severity = alertSeverities.find((known) => known === query.get("severity"));
  const rule = ruleNames.find((known) => known === query.get("rule"));
  const object = query.get("object")?.trim().slice(0, 255) ?? "";
  const before = numberOf(query.get("before") ?? "");
  return {
    ...(state === undefined ? {} : statesOf(state)),
    ...(severity === undefined ? {} : { severity }),
    ...(rule === undefined ? {} : { rule }),
    ...(object === "" ? {} : { object }),
    ...(before === null ? {} : { before }),
  };
}

function statesOf(state: (typeof stateFilters)[number]): Pick<AlertFilter, "states" | "silenced"> {
  if (state === "all") return { states: alertStates };
  return state === "silenced" ? { silenced: true } : { states: [state] };
}

function commandOf(query: URLSearchParams, { severity, rule, silenced }: Omit<AlertFilter, "limit">): string {
  if (silenced === true) return tallyhook("alerts silences");
  const state = stateFilters.find((known) => known === query.get("state"));
  const options = [
    state === undefined ? "" : state === "all" ? " --all" : ` --state ${state}`,
    severity === undefined ? "" : ` --severity ${severity}`,
    rule === undefined ? "" : ` --rule ${quoted(rule)}`,
  ];
  return tallyhook(`alerts list${options.join("")}`);
}
