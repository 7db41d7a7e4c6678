import type { Knex } from "knex";
import { quoted, tallyhook } from "../../../platform/command-line.ts";
import { pausing, resuming } from "../dispatch/acts.ts";
import { readHandlersHealth } from "../dispatch/handler-health.ts";
import { readDownHosts } from "../dispatch/handler-hosts.ts";
import { type HandlerRow, readHandlers } from "../dispatch/manage-handlers.ts";
import { type RunState, listRuns, readOpenRuns } from "../dispatch/open-runs.ts";
import { readAudit, recordAct } from "../../../app/people/audit.ts";
import { type Html, html } from "../../../platform/html.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { actRoute } from "../../../app/dashboard/act-route.ts";
import type { PageGroup } from "../../../app/dashboard/page-group.ts";
import { filtersIn } from "../../../app/list.ts";
import { pageOf } from "../../../app/dashboard/elements/paging.ts";
import { mayReadTexts } from "../../../app/dashboard/elements/personal.ts";
import { type PageDeps, PageError, type PageRequest, type Route } from "../../../app/dashboard/route.ts";
import { renderHandler, runFilters } from "./handler-view.ts";
import { renderHandlers } from "./list-view.ts";
import {
  type RecipientKinds,
  type RecipientWords,
  recipientPath,
  recipientState,
  recipientWords,
} from "./recipient-words.ts";
import { runRoutes } from "./run-routes.ts";
import { handlersSummary } from "./summary.ts";

const pageSize = 50;
const mostInHealth = 1_000;

/** The effects of the merchant's own code, and of programs elsewhere, for each change. Loads none of that code. */
export const handlerPagesFor = (kinds: RecipientKinds): PageGroup => ({
  place: { path: "/handlers", name: "Handlers", access: "status:read", area: "Plumbing" },
  routes: [
    ...handlerRoutes(kinds),
    ...runRoutes({ wordsOf: (request) => requireWords(request, kinds), deps: actDeps(kinds) }),
  ],
  summary: handlersSummary(kinds),
});

const handlerRoutes = (kinds: RecipientKinds): readonly Route[] => [
  {
    method: "GET",
    path: "/handlers",
    access: "status:read",
    async answer({ db, clock, timeZone }, request) {
      const [rows, healths, down] = await Promise.all([
        readHandlers(db),
        readHandlersHealth(db, { most: mostInHealth }),
        readDownHosts(db, { afterMinutes: 0 }),
      ]);
      const recipients = rows.flatMap((row) => {
        const words = recipientWords(row.name, kinds);
        const health = healths.find(({ name }) => name === row.name) ?? null;
        return words === null ? [] : [{ row, words, health }];
      });
      await recordReasonRead(db, request, rows, { kind: "page", id: "/handlers" });
      const readsTexts = mayReadTexts(request.visitor.permissions);
      return {
        kind: "page",
        title: "Handlers",
        body: renderHandlers({ recipients, down, readsTexts, now: clock.now(), timeZone }),
        command: tallyhook("handlers list"),
      };
    },
  },
  {
    method: "GET",
    path: "/handlers/:recipient",
    access: "status:read",
    async answer({ db, clock, timeZone }, request) {
      const { query, visitor } = request;
      const words = requireWords(request, kinds);
      const recipient = nameIn(request);
      const { values, problems } = filtersIn(runFilters, query);
      const [[row], healths, runs] = await Promise.all([
        readHandlers(db, recipient),
        readHandlersHealth(db, { most: mostInHealth }),
        values && readRuns(db, recipient, values.state, query.get("after") ?? ""),
      ]);
      if (row === undefined) throw unknown(words.name);
      await recordReasonRead(db, request, [row], { kind: "handler", id: recipient });
      return {
        kind: "page",
        status: runs === null ? 400 : 200,
        title: `${words.noun === "handler" ? "Handler" : "Destination"} ${words.name}`,
        body: renderHandler({
          row,
          words,
          health: healths.find(({ name }) => name === row.name) ?? null,
          pausedBy: await pauserOf(db, row),
          runs,
          problems: problems ?? {},
          query,
          mayWrite: visitor.permissions.has("handler:write"),
          readsTexts: mayReadTexts(visitor.permissions),
          now: clock.now(),
          timeZone,
        }),
        command: `${words.command} show ${quoted(words.name)}`,
      };
    },
  },
  actRoute({
    act: pausing,
    path: "/handlers/:recipient/pause",
    deps: actDeps(kinds),
    back: ({ recipient }) => recipientPath(recipient),
    now: recipientNow,
    done: (_, { recipient }, request) => ({
      to: recipientPath(recipient),
      notice: `${requireWords(request, kinds).name} is paused.`,
    }),
  }),
  actRoute({
    act: resuming,
    path: "/handlers/:recipient/resume",
    deps: actDeps(kinds),
    back: ({ recipient }) => recipientPath(recipient),
    now: recipientNow,
    done: (_, { recipient }, request) => ({
      to: recipientPath(recipient),
      notice: `${requireWords(request, kinds).name} goes on.`,
    }),
  }),
];

const nameIn = ({ params }: Pick<PageRequest, "params">): string => params["recipient"] ?? "";

const unknown = (name: string): PageError =>
  new PageError(404, `Nothing called ${name.slice(0, 80)} has run on this database.`);

/** Throws `PageError` for one whose part is absent. */
function requireWords(request: Pick<PageRequest, "params">, kinds: RecipientKinds): RecipientWords {
  const words = recipientWords(nameIn(request), kinds);
  if (words === null) throw unknown(nameIn(request));
  return words;
}

const actDeps =
  (kinds: RecipientKinds) =>
  ({ db }: PageDeps, request: PageRequest): { db: Knex } => {
    requireWords(request, kinds);
    return { db };
  };

const recipientNow = (now: unknown): Html =>
  html`<p>Now: ${recipientState(now as HandlerRow, { readsTexts: false })}</p>`;

/** Records that a visitor was shown a person's reason for a pause, where there is one. */
async function recordReasonRead(
  db: Knex,
  { actor, visitor }: Pick<PageRequest, "actor" | "visitor">,
  rows: readonly Pick<HandlerRow, "paused_by" | "pause_reason">[],
  subject: { kind: string; id: string },
): Promise<void> {
  const isShown = rows.some((row) => row.paused_by === "person" && row.pause_reason !== null);
  if (!isShown || !mayReadTexts(visitor.permissions)) return;
  await inTransaction(db, (trx) => recordAct(trx, actor, { action: "notes.read", subject }));
}

/** Without a state, the first runs of all, the dead first, in the command's order. */
async function readRuns(db: Knex, handler: string, state: RunState | null, after: string) {
  const limit = pageSize + 1;
  if (state === null) {
    return pageOf(await readOpenRuns(db, { handler, limit }), pageSize, ({ seq }) => seq);
  }
  return pageOf(await listRuns(db, { handler, state, after, limit }), pageSize, ({ place }) => place);
}

/** The pause and its record have one time, that of their transaction. */
async function pauserOf(db: Knex, { name, paused_by: by, paused_at: at }: HandlerRow) {
  if (by !== "person" || at === null) return null;
  const subject = { kind: "handler", id: name };
  const [act] = await readAudit(db, { subject, action: "handler.paused", limit: 1 });
  return act !== undefined && act.at.getTime() === at.getTime() ? act.actor : null;
}
