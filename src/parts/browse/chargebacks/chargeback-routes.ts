import type { Knex } from "knex";
import {
  type Chargeback,
  type OpenCursor,
  findChargeback,
  findChargebacks,
  findOpenChargebacks,
  listEndedChargebacks,
  listOpenKeys,
} from "../../../core/mirror/chargebacks.ts";
import { isWireId } from "../../../core/contract/wire-types.ts";
import { customerNames } from "../../../core/mirror/customer-names.ts";
import { readDisputeFacts } from "../../../core/mirror/dispute-facts.ts";
import { recordAct } from "../../../app/people/audit.ts";
import { readCases } from "../../../app/people/cases.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { type Html, html } from "../../../platform/html.ts";
import { oneLine } from "../../../platform/readable-text.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import type { PageGroup } from "../../../app/dashboard/page-group.ts";
import { readCaseView, renderCase } from "../../../app/dashboard/elements/case.ts";
import { filtersIn } from "../../../app/list.ts";
import { optional } from "../../../app/people/fields.ts";
import { type CaseFilter, caseFilters } from "../../../app/dashboard/elements/case-filter.ts";
import { filterForm } from "../../../app/dashboard/elements/filter-form.ts";
import { caseRoutes } from "../../../app/dashboard/elements/case-routes.ts";
import { pageOf } from "../../../app/dashboard/elements/paging.ts";
import { recordPersonRead } from "../../../app/dashboard/elements/personal.ts";
import { type PageDeps, PageError, type PageRequest, type Route } from "../../../app/dashboard/route.ts";
import { renderChargeback } from "./case-view.ts";
import { evidenceFiles, evidenceJson, evidenceOf, sha256, zipped } from "./evidence.ts";
import { evidencePage, renderEvidence } from "./evidence-view.ts";
import { renderEndedChargebacks } from "./ended-view.ts";
import { type Ratios, renderOpenChargebacks, shownChargebacks } from "./list-view.ts";
import { chargebackSummary } from "./summary.ts";

/** Dependencies of the pages in addition to the mirror. */
export interface ChargebackParts {
  /** The ratio of this month's chargebacks to the networks' thresholds; absent without reports. */
  ratios?(db: Knex, now: Date, timeZone: string): Promise<Ratios>;
}

const filters = {
  ...caseFilters,
  after: { is: optional({ read: cursorOf, wanted: "the place of a chargeback in the list" }) },
};
type Values = CaseFilter & { after: OpenCursor | null };

const path = "/chargebacks/:id";
const pageSize = 50;
/** The most open chargebacks, and the most ended ones, that a page reads. */
const lookThrough = 1_000;
const yearMs = 365 * 86_400_000;

/** Disputed sales: which to answer, and with what. */
export function chargebackPages(parts: ChargebackParts): PageGroup {
  const open = async (deps: PageDeps, { visitor, actor, query }: PageRequest, values: Values): Promise<Html> => {
    const { db, clock, serviceClock, timeZone } = deps;
    const [now, wallNow, own] = [serviceClock.now(), clock.now(), visitor.session.accountId];
    const { after, ...filter } = values;
    const [found, ratios] = await Promise.all([
      listOpenKeys(db, { after: after ?? undefined, limit: lookThrough + 1 }),
      after === null ? (parts.ratios?.(db, now, timeZone) ?? null) : null,
    ]);
    const looked = found.slice(0, lookThrough);
    const cases = await readCases(
      db,
      "chargeback",
      looked.map(({ key }) => key),
    );
    const matching = shownChargebacks(looked, cases, filter, { own, wallNow });
    const page = pageOf(matching, pageSize, cursorText);
    const [rows, summed] = await Promise.all([
      findChargebacks(
        db,
        page.rows.map(({ key }) => key),
      ),
      after === null
        ? findOpenChargebacks(
            db,
            matching.map(({ key }) => key),
          )
        : null,
    ]);
    const mayRead = visitor.permissions.has("person:read");
    const names = mayRead
      ? await customerNames(
          db,
          rows.flatMap(({ customerId }) => customerId ?? []),
        )
      : new Map<string, never>();
    if (names.size > 0) await recordPersonRead(db, actor, { kind: "page", id: "/chargebacks" });
    const last = looked.at(-1);
    const isMore = found.length > lookThrough && last !== undefined;
    return renderOpenChargebacks({
      open: rows.filter(({ state }) => state === "opened").sort((a, b) => a.openedAt.getTime() - b.openedAt.getTime()),
      next: page.older ?? (isMore ? cursorText(last) : null),
      summed,
      isMore,
      lookThrough,
      cases,
      names,
      filter,
      query,
      ratios,
      own,
      now,
      wallNow,
      timeZone,
    });
  };
  const ended = async ({ db, serviceClock, timeZone }: PageDeps): Promise<Html> => {
    const since = new Date(serviceClock.now().getTime() - yearMs);
    const found = await listEndedChargebacks(db, { since, lookThrough });
    return renderEndedChargebacks({ ...found, lookThrough, timeZone });
  };
  const routes: readonly Route[] = [
    {
      method: "GET",
      path: "/chargebacks",
      access: "status:read",
      async answer(deps, request) {
        const { query } = request;
        const title = "Chargebacks";
        const { values, problems } = filtersIn(filters, query);
        if (values === null) {
          return { kind: "page", title, status: 400, body: filterForm("/chargebacks", query, filters, { problems }) };
        }
        return {
          kind: "page",
          title,
          body: query.get("show") === "ended" ? await ended(deps) : await open(deps, request, values),
          command: tallyhook("report chargebacks"),
        };
      },
    },
    {
      method: "GET",
      path,
      access: "status:read",
      async answer(deps, request) {
        const { db, serviceClock, timeZone } = deps;
        const { visitor, actor } = request;
        const chargeback = await requireChargeback(deps, request);
        const { key, customerId, cardBrand, cardLastFour } = chargeback;
        const mayRead = visitor.permissions.has("person:read");
        const [facts, caseView, names] = await Promise.all([
          readDisputeFacts(db, chargeback),
          readCaseView(deps, request, { kind: "chargeback", id: key }, path),
          mayRead && customerId !== null ? customerNames(db, [customerId]) : new Map<string, never>(),
        ]);
        if (mayRead) await recordPersonRead(db, actor, { kind: "chargeback", id: key });
        const person = names.get(customerId ?? "") ?? { name: "", email: null };
        const card = cardLastFour === null ? null : `${cardBrand ?? ""} •••• ${cardLastFour}`.trim();
        return {
          kind: "page",
          title: titleOf("Chargeback", chargeback),
          body: renderChargeback({
            chargeback,
            facts,
            person: mayRead ? { ...person, card } : null,
            now: serviceClock.now(),
            timeZone,
            caseForm: renderCase(caseView),
          }),
          command: tallyhook("report chargebacks"),
        };
      },
    },
    {
      method: "GET",
      path: `${path}/evidence`,
      access: "person:read",
      async answer(deps, request) {
        const { chargeback, evidence, body } = await makeEvidence(deps, request);
        const hash = sha256(evidenceJson(evidence));
        await recordEvidence(deps, request, chargeback, { format: "page", sha256: hash });
        const at = `/chargebacks/${encodeURIComponent(chargeback.key)}`;
        return {
          kind: "page",
          title: titleOf("Evidence for chargeback", chargeback),
          body: html`<p class="row no-print">
              <a href="${at}">Back to the chargeback</a>
              <a class="button second end" href="${at}/evidence.zip">Download it as ZIP</a>
            </p>
            ${body}
            <p class="hint">
              SHA-256 of these facts: <span class="id">${hash}</span>. Tallyhook recorded that you made it.
            </p>`,
        };
      },
    },
    {
      method: "GET",
      path: `${path}/evidence.zip`,
      access: "person:read",
      async answer(deps, request) {
        const { chargeback, evidence, body } = await makeEvidence(deps, request);
        const page = evidencePage(titleOf("Evidence for chargeback", chargeback), body);
        const bytes = zipped(evidenceFiles(evidence, page));
        await recordEvidence(deps, request, chargeback, { format: "zip", sha256: sha256(bytes) });
        return {
          kind: "file",
          name: `evidence-${chargeback.key.slice(0, 80)}.zip`,
          type: "application/zip",
          body: bytes,
        };
      },
    },
    ...caseRoutes({
      kind: "chargeback",
      path,
      exists: async ({ db }, id) => (await findChargeback(db, id)) !== null,
    }),
  ];
  return {
    place: { path: "/chargebacks", name: "Chargebacks", access: "status:read", area: "Money" },
    routes,
    summary: chargebackSummary,
  };
}

const cursorText = ({ notedAt, key }: OpenCursor): string => `${notedAt}.${key}`;

/** Unreadable parameters are left out: the list then begins at its start. */
function cursorOf(text: string): OpenCursor | undefined {
  const [, notedAt, key] = /^(-?\d{1,18})\.(.+)$/s.exec(text) ?? [];
  return notedAt === undefined || key === undefined || !isWireId(key) ? undefined : { notedAt, key };
}

const titleOf = (what: string, { orderNumber, key }: Chargeback): string =>
  `${what} ${oneLine(orderNumber ?? key, 40)}`;

async function requireChargeback({ db }: PageDeps, { params }: PageRequest): Promise<Chargeback> {
  const { id = "" } = params;
  const found = await findChargeback(db, id);
  if (found !== null) return found;
  throw new PageError(404, `There is no chargeback ${oneLine(id, 80)}.`);
}

async function makeEvidence(deps: PageDeps, request: PageRequest) {
  const chargeback = await requireChargeback(deps, request);
  const evidence = evidenceOf(chargeback, await readDisputeFacts(deps.db, chargeback));
  const body: Html = renderEvidence(evidence, deps.timeZone);
  return { chargeback, evidence, body };
}

/** Called before the answer: every evidence sent has its record. */
const recordEvidence = (
  { db }: PageDeps,
  { actor }: PageRequest,
  { key }: Chargeback,
  after: { format: "page" | "zip"; sha256: string },
): Promise<void> =>
  inTransaction(db, (trx) =>
    recordAct(trx, actor, {
      action: "evidence.made",
      subject: { kind: "chargeback", id: key },
      after,
    }),
  );
