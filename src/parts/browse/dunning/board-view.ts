import type { CustomerName } from "../../../core/mirror/customer-names.ts";
import { causeOf, groupNames, requestNames } from "../../../core/mirror/dunning/decline-groups.ts";
import { dunningDays } from "../../../core/mirror/dunning/renewals.ts";
import { type DunningStage, dunningStages } from "../../../core/mirror/dunning/stages.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { type Html, html } from "../../../platform/html.ts";
import { counted } from "../../../platform/readable-text.ts";
import { caseMarks } from "../../../app/dashboard/elements/case.ts";
import { caseFilters } from "../../../app/dashboard/elements/case-filter.ts";
import { type Problems, filterForm } from "../../../app/dashboard/elements/filter-form.ts";
import { type Field, oneOf, optional, withDefault } from "../../../app/people/fields.ts";
import { money, outside, shortId, sums, time, until } from "../../../app/dashboard/elements/values.ts";
import { withQuery } from "../../../app/dashboard/elements/paging.ts";
import { ageHint } from "../../../app/dashboard/elements/slow-reads.ts";
import { type BoardCard, type BoardFilter, boardSorts, declineGroups } from "./board.ts";

export interface BoardPage {
  cards: readonly BoardCard[];
  /** Names of the customers on the cards; empty for a visitor who may not see names. */
  names: ReadonlyMap<string, CustomerName>;
  filter: BoardFilter;
  query: URLSearchParams;
  currencies: readonly string[];
  /** There are more renewals than the board reads. */
  isCut: boolean;
  /** Age of the funnel and the recovered amounts. */
  ageMs: number;
  own: number;
  /** The service's time, by which it retries; and the wall clock, by which cases rest. */
  now: Date;
  wallNow: Date;
  timeZone: string;
  /** What became of declines. */
  outcomes: Html;
}

export const stageNames: Readonly<Record<DunningStage, string>> = {
  first: "First decline",
  retrying: "Retrying",
  "last-retry": "Last retry near",
  final: "No retry left",
  recovered: "Recovered this month",
};

/** The most cards in a column; a single column shows more. */
const cardsOf = (filter: BoardFilter): number => (filter.stage === null ? 12 : 200);

/** The cards that are shown: whose customers have to be known. */
export const visibleCards = (cards: readonly BoardCard[], filter: BoardFilter): BoardCard[] =>
  dunningStages.flatMap((stage) => cards.filter((card) => card.stage === stage).slice(0, cardsOf(filter)));

export function renderBoard(page: BoardPage): Html {
  const { cards, filter, query, isCut, outcomes } = page;
  const stages = filter.stage === null ? dunningStages : [filter.stage];
  return html`<p class="lead">
      Renewals of the last ${dunningDays} days whose charge was declined and that are neither paid nor given up. A
      renewal that is paid leaves the board by itself.
    </p>
    ${ageHint(page.ageMs)} ${renderFilters(query, page.currencies)}
    ${isCut && html`<p class="problem">There are more renewals in dunning than this page reads. Amounts and counts cover those with the nearest retry.</p>`}
    ${
      cards.length === 0
        ? html`<div class="empty">${query.size === 0 ? noneYet : noneMatches}</div>`
        : html`<div class="board ${filter.stage === null ? "all" : "one"}">
            ${stages.map((stage) =>
              renderColumn(
                page,
                stage,
                cards.filter((card) => card.stage === stage),
              ),
            )}
          </div>`
    }
    ${outcomes}`;
}

const noneYet = html`No renewals are in dunning. Try it on the sandbox:
  <code>${tallyhook("trigger subscription.past_due")}</code>`;
const noneMatches = html`No renewal matches. <a href="/dunning">Show all</a>`;

function renderColumn(page: BoardPage, stage: DunningStage, cards: readonly BoardCard[]): Html {
  const most = cardsOf(page.filter);
  const more = cards.length - most;
  return html`<section class="column" aria-labelledby="stage-${stage}">
    <h2 id="stage-${stage}">${stageNames[stage]} <span class="hint">${cards.length}</span></h2>
    ${cards.length === 0 ? html`<p class="hint">no renewals</p>` : sums(cards)}
    <ul class="plain-list">
      ${cards.slice(0, most).map((card) => renderCard(page, card))}
    </ul>
    ${
      more > 0 &&
      (page.filter.stage === null
        ? html`<p>
            <a href="${withQuery("/dunning", page.query, { stage })}">Show all ${cards.length}</a>
          </p>`
        : html`<p class="hint">${counted(more, "more renewal")} not shown. Narrow the filter.</p>`)
    }
  </section>`;
}

function renderCard({ names, now, wallNow, own, timeZone }: BoardPage, card: BoardCard): Html {
  const name = names.get(card.customerId ?? "");
  return html`<li class="card">
    <h3>
      <a href="/dunning/${encodeURIComponent(card.orderId)}">${orderName(card)}</a>
      ${money(card.totalMinor, card.currency)}
    </h3>
    ${name !== undefined && html`<p class="person">${outside(name.name === "" ? (name.email ?? "no name") : name.name, 120)}</p>`}
    <p>${causeOf(card.failureCode)} <span class="hint">${groupNames[card.group]}</span></p>
    <dl class="pairs">
      <dt>Declined</dt>
      <dd>${counted(card.attempts, "attempt")}</dd>
      ${
        card.recoveredAt === null
          ? html`<dt>Next retry</dt>
              <dd>${retryOf(card, now, timeZone)}</dd>`
          : html`<dt>Paid</dt>
              <dd>${time(card.recoveredAt, timeZone)}</dd>`
      }
    </dl>
    ${card.request !== null && html`<p class="todo">${todo(card.request)}</p>`}
    ${card.stage !== "recovered" && html`<p class="hint">${caseMarks(card.current, { own, now: wallNow, timeZone })}</p>`}
  </li>`;
}

/** The name of a renewal: its order's number, or its id. */
const orderName = ({ orderNumber, orderId }: Pick<BoardCard, "orderId" | "orderNumber">): Html =>
  orderNumber === null || orderNumber.trim() === "" ? shortId(orderId) : html`Order ${outside(orderNumber)}`;

export const todo = (request: NonNullable<BoardCard["request"]>): string =>
  request === "collect" ? "Collect another way, or cancel" : requestNames[request];

export function retryOf({ nextRetryAt }: Pick<BoardCard, "nextRetryAt">, now: Date, timeZone: string): Html {
  if (nextRetryAt === null) return html`none follows`;
  return nextRetryAt === "unknown" ? html`unknown` : until(nextRetryAt, now, timeZone);
}

const currency: Field<string> = {
  read: (typed) => (/^[a-z]{3}$/i.test(typed) ? typed.toLowerCase() : undefined),
  wanted: "a currency such as usd",
};

const sortNames: Readonly<Record<BoardFilter["sort"], string>> = {
  retry: "next retry",
  amount: "amount",
  attempts: "attempts",
  newest: "last decline",
};

export const boardFilters = {
  who: caseFilters.who,
  stage: {
    is: optional(oneOf(dunningStages)),
    label: "Stage",
    unset: "all",
    choices: dunningStages.map((stage) => [stage, stageNames[stage]] as const),
  },
  currency: { is: optional(currency), label: "Currency", unset: "all" },
  group: {
    is: optional(oneOf(declineGroups)),
    label: "Kind of decline",
    unset: "all",
    choices: declineGroups.map((group) => [group, groupNames[group].split(":", 1)[0] ?? group] as const),
  },
  snoozed: caseFilters.snoozed,
  sort: {
    is: withDefault(oneOf(boardSorts), "retry"),
    label: "Sort by",
    choices: boardSorts.map((sort) => [sort, sortNames[sort]] as const),
  },
};

/** `currencies`: those on the board. */
export function renderFilters(query: URLSearchParams, currencies: readonly string[], problems: Problems = {}): Html {
  const choices = currencies.map((code) => [code, code.toUpperCase()] as const);
  return filterForm(
    "/dunning",
    query,
    { ...boardFilters, currency: { ...boardFilters.currency, choices } },
    { problems },
  );
}
