import type { Funnel } from "../../../core/mirror/dunning/funnel.ts";
import { readCaseView, renderCase } from "../../../app/dashboard/elements/case.ts";
import { caseRoutes } from "../../../app/dashboard/elements/case-routes.ts";
import { recordPersonRead } from "../../../app/dashboard/elements/personal.ts";
import { createSlowReads, slowMs } from "../../../app/dashboard/elements/slow-reads.ts";
import type { PageGroup } from "../../../app/dashboard/page-group.ts";
import { filtersIn } from "../../../app/list.ts";
import { PageError, type Route } from "../../../app/dashboard/route.ts";
import { customerNames } from "../../../core/mirror/customer-names.ts";
import { findDeclinedOrders, mergedOrders } from "../../../core/mirror/dunning/declined-orders.ts";
import { type DeclinedRenewal, findRenewal } from "../../../core/mirror/dunning/renewals.ts";
import { readCase } from "../../../app/people/cases.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { oneLine } from "../../../platform/readable-text.ts";
import { localTimeIn } from "../../../platform/local-time.ts";
import { cardOf, shownCards } from "./board.ts";
import { boardFilters, renderBoard, renderFilters, visibleCards } from "./board-view.ts";
import { renderFunnel, renderWeeks } from "./funnel-view.ts";
import { html } from "../../../platform/html.ts";
import { patterns } from "../../../app/figures/svg-figures.ts";
import { renderRenewal } from "./renewal-view.ts";
import { type DunningParts, readCards, readRecovered, readUnpaid } from "./read-board.ts";
import { dunningSummary } from "./summary.ts";

const path = "/dunning/:id";

/** Declined renewals: assignees, requests and outcomes. */
export function dunningPages(parts: DunningParts): PageGroup {
  const recovered = createSlowReads<"month", DeclinedRenewal[]>(slowMs.sums);
  const funnels = createSlowReads<string, Funnel | null>(slowMs.sums);
  const routes: readonly Route[] = [
    {
      method: "GET",
      path: "/dunning",
      access: "status:read",
      async answer(deps, { visitor, actor, query }) {
        const { db, clock, serviceClock, timeZone } = deps;
        const title = "Dunning";
        const { values: filter, problems } = filtersIn(boardFilters, query);
        if (filter === null) return { kind: "page", title, status: 400, body: renderFilters(query, [], problems) };
        const month = monthIn(query.get("month"), serviceClock.now(), timeZone);
        const readFunnel = async () => (await parts.funnel?.(db, month, timeZone)) ?? null;
        // Past figures are cached where they are slow; unpaid renewals are read each time.
        const [unpaid, paid, funnel, weeks] = await Promise.all([
          readUnpaid(deps),
          recovered(deps, "month", () => readRecovered(deps)),
          funnels(deps, month, readFunnel),
          parts.weeks?.(db, serviceClock.now(), timeZone) ?? null,
        ]);
        const settings = await parts.settings();
        const { cards, isCut } = await readCards(deps, settings, [unpaid, paid.value]);
        const [own, wallNow, now] = [visitor.session.accountId, clock.now(), serviceClock.now()];
        const shown = shownCards(cards, filter, { own, now: wallNow });
        const mayRead = visitor.permissions.has("person:read");
        const ids = visibleCards(shown, filter).flatMap(({ customerId }) => customerId ?? []);
        const names = mayRead ? await customerNames(db, ids) : new Map<string, never>();
        if (names.size > 0) await recordPersonRead(db, actor, { kind: "page", id: "/dunning" });
        return {
          kind: "page",
          title,
          body: renderBoard({
            cards: shown,
            names,
            filter,
            query,
            currencies: [...new Set(cards.flatMap(({ currency }) => currency ?? []))].sort(),
            isCut,
            own,
            now,
            wallNow,
            timeZone,
            ageMs: Math.max(paid.ageMs, funnel.ageMs),
            outcomes: html`${patterns}${weeks === null ? null : renderWeeks(weeks)}
            ${funnel.value === null ? null : renderFunnel(funnel.value, month, query)}`,
          }),
          command: tallyhook("report past-due-aging"),
        };
      },
    },
    {
      method: "GET",
      path,
      access: "status:read",
      async answer(deps, request) {
        const { db, serviceClock, timeZone } = deps;
        const { visitor, actor, params } = request;
        const { id = "" } = params;
        const renewal = await findRenewal(db, id);
        if (renewal === null) throw new PageError(404, `There is no declined renewal ${id.slice(0, 80)}.`);
        const subject = { kind: "dunning", id } as const;
        const [settings, now] = [await parts.settings(), serviceClock.now()];
        const [current, orders, caseView] = await Promise.all([
          readCase(db, subject),
          findDeclinedOrders(db, [id]),
          readCaseView(deps, request, subject, path),
        ]);
        const history = mergedOrders(orders).find(({ ids }) => ids.includes(id)) ?? null;
        const mayRead = visitor.permissions.has("person:read");
        const customerId = renewal.customerId ?? "";
        const names = mayRead ? await customerNames(db, [customerId]) : new Map<string, never>();
        if (mayRead) await recordPersonRead(db, actor, { kind: "order", id });
        const card =
          history?.cardLastFour == null ? null : `${history.cardBrand ?? ""} •••• ${history.cardLastFour}`.trim();
        return {
          kind: "page",
          title: `Renewal ${oneLine(renewal.orderNumber ?? id, 40)}`,
          body: renderRenewal({
            card: cardOf(renewal, current, { settings, now }),
            state: renewal.state,
            history,
            person: mayRead ? { ...(names.get(customerId) ?? { name: "", email: null }), card } : null,
            settings,
            now,
            timeZone,
            caseForm: renderCase(caseView),
          }),
          command: tallyhook("report declines"),
        };
      },
    },
    ...caseRoutes({
      kind: "dunning",
      path,
      exists: async ({ db }, id) => (await findRenewal(db, id)) !== null,
    }),
  ];
  return {
    place: { path: "/dunning", name: "Dunning", access: "status:read", area: "Money" },
    routes,
    summary: dunningSummary(parts),
  };
}

function monthIn(asked: string | null, now: Date, timeZone: string): string {
  if (asked !== null && /^\d{4}-(0[1-9]|1[0-2])$/.test(asked)) return asked;
  const { year, month } = localTimeIn(timeZone)(now);
  return `${year}-${String(month).padStart(2, "0")}`;
}
