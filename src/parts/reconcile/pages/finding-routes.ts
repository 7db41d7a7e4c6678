import type { Knex } from "knex";
import { recordAct } from "../../../app/people/audit.ts";
import { type Subject, listAssignees, readCases } from "../../../app/people/cases.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { type Html, html } from "../../../platform/html.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { acknowledgingFinding, findingNamed } from "../acts.ts";
import { type FindingRow, findingClasses } from "../findings/findings.ts";
import { findingList } from "../findings/finding-list.ts";
import { withoutPersonalEvidence } from "../findings/redact-findings.ts";
import { findingVersion, sumOpenFindings } from "../findings/search-findings.ts";
import { actRoute } from "../../../app/dashboard/act-route.ts";
import { readCaseView, renderCase } from "../../../app/dashboard/elements/case.ts";
import { caseRoutes } from "../../../app/dashboard/elements/case-routes.ts";
import { listRoute } from "../../../app/dashboard/list-route.ts";
import { type PageDeps, PageError, type PageRequest, type Route } from "../../../app/dashboard/route.ts";
import { patterns, renderFigures } from "../../../app/figures/svg-figures.ts";
import { counted } from "../../../platform/readable-text.ts";
import { listRuns } from "../runs/list-runs.ts";
import { drawnNights, driftByNight, driftFigures } from "./drift-figure.ts";
import { renderFinding } from "./finding-view.ts";
import { renderFindings, renderSums } from "./findings-view.ts";
import { framed } from "./frame.ts";
import { className } from "./words.ts";

const findingPath = "/reconciliation/findings/:id";

const board = listRoute({
  list: findingList,
  title: "Findings",
  access: "status:read",
  head: async (deps, { query }) =>
    framed(
      "Findings",
      html`${renderSums(await sumOpenFindings(deps.db))} ${query.size === 0 ? await renderNights(deps) : null}`,
    ),
  async choices({ db }, { visitor }) {
    const own = String(visitor.session.accountId);
    const others = (await listAssignees(db)).filter(({ id }) => String(id) !== own);
    return {
      class: findingClasses.map((name) => [name, className(name)]),
      with: [[own, "me"], ...others.map(({ id, email }) => [String(id), email] as const)],
    };
  },
  async table(rows, { db, serviceClock }, { query, visitor }) {
    const ids = rows.map(({ id }) => id);
    return renderFindings(visitor.permissions.has("person:read") ? rows : rows.map(withoutPersonalEvidence), {
      cases: await readCases(db, "finding", ids),
      query,
      now: serviceClock.now(),
    });
  },
});

/** More runs of 30 days than a night has by any schedule. */
const mostRuns = 1_000;

/** One statement. */
async function renderNights({ db, clock, timeZone }: PageDeps): Promise<Html> {
  const now = clock.now();
  const since = new Date(now.getTime() - drawnNights * 86_400_000);
  const nights = driftByNight(await listRuns(db, { since, limit: mostRuns }), { now, timeZone });
  const figures = driftFigures(nights);
  if (figures.length > 0) return html`${patterns}${renderFigures(figures, "drift")}`;
  return html`<p class="hint">
    ${nights.length === 0 ? `No run in the last ${drawnNights} nights.` : `No drift in ${counted(nights.length, "night")}.`}
  </p>`;
}

/** `with=me` in an address means the account of the visitor. */
function withOwnNumber(request: PageRequest): PageRequest {
  const query = new URLSearchParams(request.query);
  if (query.get("with") === "me") query.set("with", String(request.visitor.session.accountId));
  return { ...request, query };
}

export const findingRoutes: readonly Route[] = [
  { ...board, answer: (deps: PageDeps, request: PageRequest) => board.answer(deps, withOwnNumber(request)) },
  {
    method: "GET",
    path: "/reconciliation/findings/:id",
    access: "status:read",
    async answer(deps, request) {
      const { db, serviceClock, timeZone } = deps;
      const { params, visitor, actor } = request;
      const found = await requireFinding(db, params["id"]);
      const subject = subjectOf(found);
      const seesPersons = visitor.permissions.has("person:read");
      const caseView = await readCaseView(deps, request, subject, findingPath);
      if (seesPersons && holdsMore(found)) {
        await inTransaction(db, (trx) => recordAct(trx, actor, { action: "finding.read", subject }));
      }
      return {
        kind: "page",
        title: `Finding ${found.id}`,
        body: framed(
          "Findings",
          renderFinding({
            finding: seesPersons ? found : withoutPersonalEvidence(found),
            version: findingVersion(found),
            caseForm: renderCase(caseView),
            mayWrite: visitor.permissions.has("case:write"),
            mayHeal: visitor.permissions.has("object:heal"),
            seesPersons,
            timeZone,
            now: serviceClock.now(),
          }),
        ),
        command: tallyhook(`findings show ${found.id}`),
      };
    },
  },
  actRoute({
    act: acknowledgingFinding,
    path: "/reconciliation/findings/:finding/acknowledge",
    deps: ({ db, clock }) => ({ db, clock }),
    back: ({ finding }) => `/reconciliation/findings/${finding}`,
    now: findingNow,
    done: ({ id }, _, { actor }) => ({
      to: `/reconciliation/findings/${id}`,
      notice: `Finding ${id} is acknowledged by ${actor.name}.`,
    }),
  }),
  ...caseRoutes({
    kind: "finding",
    path: findingPath,
    exists: async ({ db }, id) => (await findingNamed(db, id)) !== null,
  }),
];

const subjectOf = ({ id }: FindingRow): Subject => ({ kind: "finding", id });

/** Throws `PageError`. */
async function requireFinding(db: Knex, id = ""): Promise<FindingRow> {
  const found = await findingNamed(db, id);
  if (found === null) throw new PageError(404, `There is no finding ${id.slice(0, 40)}.`);
  return found;
}

/** Whether parts of it are visible only with `person:read`. */
const holdsMore = (finding: FindingRow): boolean =>
  JSON.stringify(withoutPersonalEvidence(finding)) !== JSON.stringify(finding);

function findingNow(now: unknown): Html {
  const finding = now as FindingRow;
  return html`<p>
    It is ${finding.state} now${finding.ack_by !== null && `, by ${finding.ack_by}`}, and names
    ${finding.differences.length} fields.
  </p>`;
}
