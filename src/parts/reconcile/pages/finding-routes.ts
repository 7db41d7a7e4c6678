import type { Knex } from "knex";
import { recordAct } from "../../../app/people/audit.ts";
import { type Subject, assignedTo, listAssignees, readCases } from "../../../app/people/cases.ts";
import { quoted, tallyhook } from "../../../platform/command-line.ts";
import { type Html, html } from "../../../platform/html.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { acknowledgingFinding, findingNamed } from "../acts.ts";
import { slicedResources } from "../coverage/slice.ts";
import { type FindingRow, findingClasses, severities } from "../findings/findings.ts";
import { withoutPersonalEvidence } from "../findings/redact-findings.ts";
import {
  type FindingCursor,
  type FindingFilter,
  findingVersion,
  searchFindings,
  sumOpenFindings,
} from "../findings/search-findings.ts";
import { actRoute } from "../../../app/dashboard/act-route.ts";
import { readCaseView, renderCase } from "../../../app/dashboard/elements/case.ts";
import { caseRoutes } from "../../../app/dashboard/elements/case-routes.ts";
import { pageOf } from "../../../app/dashboard/elements/paging.ts";
import { PageError, type Route, type Visitor } from "../../../app/dashboard/route.ts";
import { renderFinding } from "./finding-view.ts";
import { renderFindings, shownStates } from "./findings-view.ts";
import { framed } from "./frame.ts";

const pageSize = 50;

const findingPath = "/reconciliation/findings/:id";

export const findingRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/reconciliation/findings",
    access: "status:read",
    async answer({ db, serviceClock, timeZone }, { query, visitor }) {
      const filter = await filterOf(db, query, visitor);
      const after = cursorOf(query.get("before"));
      const [rows, open, assignees] = await Promise.all([
        searchFindings(db, filter, { after, limit: pageSize + 1 }),
        sumOpenFindings(db),
        listAssignees(db),
      ]);
      const seesPersons = visitor.permissions.has("person:read");
      const findings = pageOf(
        seesPersons ? rows : rows.map(withoutPersonalEvidence),
        pageSize,
        ({ severity, id }) => `${severity}.${id}`,
      );
      const ids = findings.rows.map(({ id }) => id);
      const cases = await readCases(db, "finding", ids);
      const now = serviceClock.now();
      return {
        kind: "page",
        title: "Findings",
        body: framed("Findings", renderFindings({ findings, open, cases, assignees, query, timeZone, now })),
        command: commandOf(filter),
      };
    },
  },
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

/** Unreadable parameters are left out. One statement where the filter names a person. */
async function filterOf(db: Knex, query: URLSearchParams, { session }: Visitor): Promise<FindingFilter> {
  const text = (name: string) => query.get(name)?.trim().slice(0, 255) ?? "";
  const one = <T extends string>(names: readonly T[], name: string): T | undefined =>
    names.find((known) => known === text(name));
  const stateName = text("state");
  const states = Object.hasOwn(shownStates, stateName)
    ? shownStates[stateName as keyof typeof shownStates]
    : shownStates[""];
  const person = text("with") === "me" ? String(session.accountId) : text("with");
  const run = text("run");
  return {
    states,
    severity: one(severities, "severity"),
    class: one(findingClasses, "class"),
    resource: one(slicedResources, "list"),
    object: text("object") === "" ? undefined : text("object"),
    run: /^\d{1,15}$/.test(run) ? Number(run) : undefined,
    ids: /^\d{1,15}$/.test(person) ? await assignedTo(db, "finding", Number(person)) : undefined,
  };
}

function cursorOf(text: string | null): FindingCursor | undefined {
  const [, name, id] = /^([a-z]+)\.(\d{1,15})$/.exec(text ?? "") ?? [];
  const severity = severities.find((known) => known === name);
  return severity === undefined || id === undefined ? undefined : { severity, id };
}

function commandOf({ states, object }: FindingFilter): string {
  if (object !== undefined) return tallyhook(`findings list --all | grep ${quoted(object)}`);
  if (states.length > 2) return tallyhook("findings list --all");
  const [state] = states;
  return states.length === 1 && state !== undefined
    ? tallyhook(`findings list --state ${state}`)
    : tallyhook("findings list");
}
