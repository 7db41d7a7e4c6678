import type { CustomerName } from "../../../core/mirror/customer-names.ts";
import { type DeclinedOrder, declinedAttempts } from "../../../core/mirror/dunning/declined-orders.ts";
import { causeOf, declineAdvice, groupNames } from "../../../core/mirror/dunning/decline-groups.ts";
import type { DunningSettings } from "../../../core/mirror/dunning/stages.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { type Html, html } from "../../../platform/html.ts";
import { counted, oneLine } from "../../../platform/readable-text.ts";
import {
  type Tone,
  money,
  objectLink,
  outside,
  state,
  time,
  wholeObjectLink,
} from "../../../app/dashboard/elements/values.ts";
import { table } from "../../../app/dashboard/elements/table.ts";
import type { BoardCard } from "./board.ts";
import { retryOf, stageNames, todo } from "./board-view.ts";

export interface RenewalPage {
  card: BoardCard;
  /** Its outcome so far: on the board, or ended. */
  state: "in progress" | "recovered" | "lost";
  /** The history of its attempts; null where there is none. */
  history: DeclinedOrder | null;
  /** Null for a visitor who may not see customers' names. */
  person: (CustomerName & { card: string | null }) | null;
  settings: DunningSettings;
  now: Date;
  timeZone: string;
  caseForm: Html;
}

const tones: Readonly<Record<BoardCard["stage"], Tone>> = {
  first: "calm",
  retrying: "calm",
  "last-retry": "warn",
  final: "bad",
  recovered: "good",
};

export function renderRenewal(page: RenewalPage): Html {
  const { card, person, now, timeZone, caseForm } = page;
  const events = `/events?object=${encodeURIComponent(card.orderId)}`;
  return html`<section class="card">
      <div class="row">
        <h2>${money(card.totalMinor, card.currency)}</h2>
        ${page.state === "lost" ? state("Lost: its subscription ended, or it was voided", "bad") : state(stageNames[card.stage], tones[card.stage])}
      </div>
      <dl class="facts">
        <dt>Order</dt>
        <dd>${wholeObjectLink("order", card.orderId)}</dd>
        <dt>Subscription</dt>
        <dd>${wholeObjectLink("subscription", card.subscriptionId)}, cycle ${card.cycle}</dd>
        ${
          person === null &&
          card.customerId !== null &&
          html`<dt>Customer</dt>
            <dd>${objectLink("customer", card.customerId)}</dd>`
        }
        ${
          person !== null &&
          html`<dt>Customer</dt>
            <dd>
              ${outside(person.name === "" ? "no name" : person.name)}${person.email !== null && html` · ${outside(person.email)}`}
              ${card.customerId !== null && html` · ${objectLink("customer", card.customerId)}`}
            </dd>
            ${
              person.card !== null &&
              html`<dt>Card</dt>
                <dd>${outside(person.card)}</dd>`
            }`
        }
        <dt>Declined</dt>
        <dd>
          ${counted(card.attempts, "attempt")}${card.lastDeclinedAt !== null && html`, last ${time(card.lastDeclinedAt, timeZone)}`}
        </dd>
        <dt>Why</dt>
        <dd>
          ${causeOf(card.failureCode)}
          <span class="hint"
            >${groupNames[card.group]}${card.failureCode !== null && html` · ${oneLine(card.failureCode, 40)}`}</span
          >
        </dd>
        ${
          card.recoveredAt === null
            ? html`<dt>Next retry</dt>
                <dd>${retryOf(card, now, timeZone)}</dd>`
            : html`<dt>Paid</dt>
                <dd>${time(card.recoveredAt, timeZone)}</dd>`
        }
        <dt>Events</dt>
        <dd><a href="${events}">events about it</a></dd>
      </dl>
    </section>
    ${page.state === "in progress" && renderAdvice(page)} ${renderAttempts(page)} ${caseForm}`;
}

function renderAdvice({ card, settings, timeZone }: RenewalPage): Html | null {
  const { request, nextRetryAt } = card;
  if (request === null) return null;
  const advice =
    request === "collect"
      ? "No retry follows. Ask the customer to pay another way (a new order with another card, a bank transfer), or " +
        "cancel the subscription so that you deliver nothing unpaid."
      : declineAdvice({
          code: card.failureCode,
          request,
          kind: "renewal",
          nextRetry:
            nextRetryAt instanceof Date
              ? new Intl.DateTimeFormat("en-GB", {
                  dateStyle: "medium",
                  timeStyle: "short",
                  timeZone,
                }).format(nextRetryAt)
              : null,
          isLastRetryAhead: card.attempts >= settings.lastAttempt,
        });
  return html`<section class="card">
    <h2>${todo(request)}</h2>
    <p>${advice}</p>
  </section>`;
}

function renderAttempts({ history, timeZone }: RenewalPage): Html {
  const declined = history === null ? [] : declinedAttempts(history);
  const told = new Map(history?.dunning.map(({ attempt, ...rest }) => [attempt, rest]));
  const paid = (history?.sales ?? []).filter(({ status }) => status !== "failed");
  const rows = [
    ...declined.map(({ number, at, failureCode }) => ({
      name: String(number),
      at,
      outcome: html`declined: ${causeOf(failureCode)}`,
      retry: told.get(number),
    })),
    ...paid.map(({ at, status }) => ({
      name: "",
      at,
      outcome: html`${oneLine((status ?? "unknown").replaceAll("_", " "), 40)}`,
      retry: undefined,
    })),
  ].sort((a, b) => a.at.getTime() - b.at.getTime());
  return table(
    [
      { name: "Attempt", kind: "number", cell: ({ name }) => name },
      { name: "When", cell: ({ at }) => time(at, timeZone) },
      { name: "Outcome", cell: ({ outcome }) => outcome },
      {
        name: "Retry expected",
        cell: ({ retry }) => {
          if (retry === undefined || retry.isRetryUnknown) return "–";
          return retry.nextRetryAt === null ? "none" : time(retry.nextRetryAt, timeZone);
        },
      },
    ],
    rows,
    {
      caption: "Attempts",
      empty: html`No attempt of this order is known yet. A read of the service brings them:
        <code>${tallyhook("reconcile")}</code>`,
    },
  );
}
