import type { Knex } from "knex";
import { acknowledgeAlert } from "../../../alerts/escalation.ts";
import { alertSeverities } from "../../../alerts/message.ts";
import { resendFailed } from "../../../alerts/outbox/outbox.ts";
import { runbookOf } from "../../../alerts/runbook.ts";
import { loadAlertSettings } from "../../../alerts/settings.ts";
import { listSilences, silencesSince } from "../../../alerts/silences.ts";
import {
  type AlertDetails,
  type AlertFilter,
  type AlertRow,
  alertStates,
  countUnresolved,
  findAlert,
  isAlert,
  listAlerts,
  lockAlert,
} from "../../../alerts/store.ts";
import { recordAct } from "../../../people/audit.ts";
import { longLine } from "../../../platform/free-text.ts";
import { html } from "../../../platform/html.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { counted } from "../../../platform/readable-text.ts";
import type { PageGroup } from "../../page-group.ts";
import { caseRoutes } from "../../parts/case-routes.ts";
import { readCaseView } from "../../parts/case.ts";
import { quoted } from "../../parts/command.ts";
import { outdated, versionOf } from "../../parts/decided-on.ts";
import { optionalText } from "../../parts/form-text.ts";
import { pageOf } from "../../parts/paging.ts";
import { severityState } from "../../parts/state.ts";
import { PageError, type Route } from "../../route.ts";
import { renderAlert, versionOfAlert, versionToSilence } from "./alert-view.ts";
import { alertState, sightOf } from "./alert-words.ts";
import { renderAlerts, stateFilters } from "./list-view.ts";
import { versionOfFailed } from "./message-view.ts";
import { silenceRoutes } from "./silence-routes.ts";
import { alertsSummary } from "./summary.ts";

const pageSize = 50;
const alertPath = "/alerts/:id";
const mostCounted = 1_001;

/** Given up so long ago at most; older messages are removed. */
const withinHours = 8_784;

const routesOf = (runbooksUrl: string | null): readonly Route[] => [
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
          rules: ruleNames(),
          query,
          sight: sightOf(visitor.permissions),
          timeZone,
        }),
        command: commandOf(query, filter),
      };
    },
  },
  ...silenceRoutes({ requireToSilence, ruleNames }),
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
      const isWrittenOn =
        alert.acknowledged_note !== null || silences.some(({ reason }) => reason !== null);
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
        command: `node src/bin/tallyhook.js alerts show ${alert.id}`,
      };
    },
  },
  {
    method: "POST",
    path: "/alerts/:id/acknowledge",
    access: "alert:write",
    async answer({ db, clock, timeZone }, { params, form, actor }) {
      const note = optionalText(form, "note", longLine);
      return inTransaction(db, async (trx) => {
        const alert = await requireDecided(trx, params["id"] ?? "", form, timeZone);
        const id = Number(alert.id);
        const said = { id, by: actor.name, note };
        const outcome = await acknowledgeAlert({ db: trx, clock }, said);
        if (outcome !== "acknowledged") throw alertOutdated(alert, timeZone);
        await recordAct(trx, actor, {
          action: "alert.acknowledged",
          subject: { kind: "alert", id: alert.id },
          before: { state: alert.state },
          after: { state: "acknowledged" },
        });
        return {
          kind: "redirect",
          to: `/alerts/${alert.id}`,
          notice: "Acknowledged: it is yours.",
        };
      });
    },
  },
  {
    method: "POST",
    path: "/alerts/:id/resend",
    access: "alert:write",
    answer: async ({ db }, { params, form, actor }) =>
      inTransaction(db, async (trx) => {
        const alert = await requireAlert(trx, params["id"] ?? "");
        const version = versionOfFailed(alert.messages);
        if (version === "" || versionOf(form) !== version) throw messagesOutdated(alert);
        const messages = await resendFailed(trx, { alertId: Number(alert.id), withinHours });
        const n = Object.values(messages).reduce((sum, each) => sum + each, 0);
        await recordAct(trx, actor, {
          action: "alert.resent",
          subject: { kind: "alert", id: alert.id },
          after: { messages },
        });
        const to = `/alerts/${alert.id}`;
        return { kind: "redirect", to, notice: `Workers send ${counted(n, "message")} again.` };
      }),
  },
  {
    method: "POST",
    path: "/alerts/:id/messages/:message/resend",
    access: "alert:write",
    answer: async ({ db }, { params, form, actor }) =>
      inTransaction(db, async (trx) => {
        const alert = await requireAlert(trx, params["id"] ?? "");
        const message = alert.messages.find(({ id }) => id === params["message"]);
        if (message === undefined) {
          throw new PageError(404, "This alert has no such message. Old ones are removed.");
        }
        const { id, state, attempts, channel, stage } = message;
        if (state !== "failed" || versionOf(form) !== String(attempts))
          throw messagesOutdated(alert);
        await resendFailed(trx, { messageId: Number(id), withinHours });
        await recordAct(trx, actor, {
          action: "alert.resent",
          subject: { kind: "alert", id: alert.id },
          after: { message: id, channel, stage },
        });
        return { kind: "redirect", to: `/alerts/${alert.id}`, notice: "A worker sends it again." };
      }),
  },
  ...caseRoutes({
    kind: "alert",
    path: alertPath,
    async exists({ db }, id) {
      const number = numberOf(id);
      return number !== null && isAlert(db, number);
    },
  }),
];

/** What people are told, who has it, and what waits. `runbooksUrl`: the address of the runbooks; null: their path. */
export const alertPages = (runbooksUrl: string | null): PageGroup => ({
  place: { path: "/alerts", name: "Alerts", access: "status:read" },
  routes: routesOf(runbooksUrl),
  summary: alertsSummary,
});

/** Every rule there is, whatever the settings of this deployment say of it. */
function ruleNames(): readonly string[] {
  return Object.keys(loadAlertSettings(null).rules);
}

/** As written in one way alone: what people write about an alert is kept by this text. Pure. */
const numberOf = (id: string): number | null => (/^[1-9]\d{0,14}$/.test(id) ? Number(id) : null);

const noAlert = (id: string): PageError =>
  new PageError(404, `There is no alert number ${id.slice(0, 40)}. Old ones are removed.`);

async function requireAlert(db: Knex, id: string): Promise<AlertDetails> {
  const number = numberOf(id);
  const found = number === null ? null : await findAlert(db, number);
  if (found === null) throw noAlert(id);
  return found;
}

async function requireLocked(trx: Knex.Transaction, id: string): Promise<AlertRow> {
  const number = numberOf(id);
  const found = number === null ? null : await lockAlert(trx, number);
  if (found === null) throw noAlert(id);
  return found;
}

/** The alert, locked, where it is as the form's sender saw it. Throws `PageError`. */
async function requireDecided(
  trx: Knex.Transaction,
  id: string,
  form: URLSearchParams,
  timeZone: string,
): Promise<AlertRow> {
  const found = await requireLocked(trx, id);
  if (versionOf(form) !== versionOfAlert(found)) throw alertOutdated(found, timeZone);
  return found;
}

/** The same, and its silences as well: whoever waits for the lock sees the one that was begun meanwhile. */
async function requireToSilence(
  trx: Knex.Transaction,
  id: string,
  form: URLSearchParams,
  timeZone: string,
): Promise<AlertRow> {
  const found = await requireLocked(trx, id);
  const silences = await silencesSince(trx, found, found.opened_at);
  if (versionOf(form) !== versionToSilence(found, silences)) throw alertOutdated(found, timeZone);
  return found;
}

const alertOutdated = (alert: AlertRow, timeZone: string): PageError =>
  outdated(
    `Alert ${alert.id}`,
    html`<p>
        Now: ${severityState(alert.severity)} ${alertState(alert, timeZone)}, stage ${alert.stage}
        ${alert.acknowledged_by !== null && html`, acknowledged by ${alert.acknowledged_by}`}
      </p>
      <p><a href="/alerts/${alert.id}">Look at it again</a></p>`,
  );

const messagesOutdated = (alert: AlertDetails): PageError =>
  outdated(
    "What was given up",
    html`<ul>
        ${alert.messages.map(({ channel, stage, state }) => html`<li>${channel}, ${stage}: ${state}</li>`)}
      </ul>
      <p><a href="/alerts/${alert.id}">Look at it again</a></p>`,
  );

/** What cannot be read in the address is left out: the view then shows more, and the form says what it shows. Pure. */
function filterOf(query: URLSearchParams): Omit<AlertFilter, "limit"> {
  const state = stateFilters.find((known) => known === query.get("state"));
  const severity = alertSeverities.find((known) => known === query.get("severity"));
  const rule = ruleNames().find((known) => known === query.get("rule"));
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

function commandOf(
  query: URLSearchParams,
  { severity, rule, silenced }: Omit<AlertFilter, "limit">,
): string {
  if (silenced === true) return "node src/bin/tallyhook.js alerts silences";
  const state = stateFilters.find((known) => known === query.get("state"));
  const options = [
    state === undefined ? "" : state === "all" ? " --all" : ` --state ${state}`,
    severity === undefined ? "" : ` --severity ${severity}`,
    rule === undefined ? "" : ` --rule ${quoted(rule)}`,
  ];
  return `node src/bin/tallyhook.js alerts list${options.join("")}`;
}
