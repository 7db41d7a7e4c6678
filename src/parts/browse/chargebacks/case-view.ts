import { type Chargeback, chargebackAdvice } from "../../../core/mirror/chargebacks.ts";
import type { DisputeFacts } from "../../../core/mirror/dispute-facts.ts";
import type { CustomerName } from "../../../core/mirror/customer-names.ts";
import { type Html, html } from "../../../platform/html.ts";
import { moneyText } from "../../../platform/money.ts";
import { durationText } from "../../../platform/readable-text.ts";
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

export interface ChargebackPage {
  chargeback: Chargeback;
  facts: Pick<DisputeFacts, "transactions" | "timeline">;
  /** Null for a visitor who may not see customers' names. */
  person: (CustomerName & { card: string | null }) | null;
  now: Date;
  timeZone: string;
  caseForm: Html;
}

const states: Readonly<Record<Chargeback["state"], readonly [text: string, tone: Tone]>> = {
  opened: ["To answer", "bad"],
  accepted: ["Lost", "bad"],
  dismissed: ["Won", "good"],
};

export function renderChargeback(page: ChargebackPage): Html {
  const { chargeback, person, now, timeZone, caseForm } = page;
  const { key, opening, orderId, openedAt, resolvedAt, refundedMinor, currency } = chargeback;
  const path = `/chargebacks/${encodeURIComponent(key)}`;
  const refunded = refundedMinor === 0n ? null : moneyText(refundedMinor, currency);
  return html`<section class="card">
      <div class="row">
        <h2>${money(chargeback.amountMinor, currency)}</h2>
        ${state(...states[chargeback.state])}
        ${person !== null && html`<a class="button second end" href="${path}/evidence">Evidence</a>`}
      </div>
      <dl class="facts">
        ${
          orderId !== null &&
          html`<dt>Order</dt>
            <dd>${wholeObjectLink("order", orderId)}</dd>`
        }
        ${
          chargeback.transactionId !== null &&
          html`<dt>Transaction</dt>
            <dd>${wholeObjectLink("transaction", chargeback.transactionId)}</dd>`
        }
        ${
          person === null &&
          chargeback.customerId !== null &&
          html`<dt>Customer</dt>
            <dd>${objectLink("customer", chargeback.customerId)}</dd>`
        }
        ${
          person !== null &&
          html`<dt>Customer</dt>
            <dd>
              ${outside(person.name === "" ? "no name" : person.name)}${person.email !== null && html` · ${outside(person.email)}`}
              ${chargeback.customerId !== null && html` · ${objectLink("customer", chargeback.customerId)}`}
            </dd>
            ${
              person.card !== null &&
              html`<dt>Card</dt>
                <dd>${outside(person.card)}</dd>`
            }`
        }
        <dt>Opened</dt>
        <dd>
          ${time(openedAt, timeZone)} ${opening > 1 && html`<span class="hint">again: opened ${opening} times</span>`}
        </dd>
        ${
          resolvedAt === null
            ? html`<dt>Open for</dt>
                <dd>${durationText(now.getTime() - openedAt.getTime())}</dd>
                <dt>Answer by</dt>
                <dd>the service does not say: look it up there</dd>`
            : html`<dt>Ended</dt>
                <dd>${time(resolvedAt, timeZone)}</dd>`
        }
        <dt>Reason</dt>
        <dd>the service does not say: look it up there</dd>
        <dt>Refunded before</dt>
        <dd>${refunded ?? "nothing"}</dd>
        <dt>Events</dt>
        <dd>
          <a href="/events?object=${encodeURIComponent(key)}">events about it</a>
        </dd>
      </dl>
    </section>
    ${
      chargeback.state === "opened" &&
      html`<section class="card">
        <h2>Answer before the bank's deadline</h2>
        <p>${chargebackAdvice(refunded)}</p>
      </section>`
    }
    ${renderPayments(page)} ${renderTimeline(page)} ${caseForm}`;
}

const renderPayments = ({ facts, timeZone }: ChargebackPage): Html =>
  table(
    [
      {
        name: "When",
        cell: ({ createdAt }) => (createdAt === null ? "–" : time(createdAt, timeZone)),
      },
      { name: "Type", cell: ({ type }) => outside(type ?? "unknown") },
      {
        name: "Status",
        cell: ({ status }) => outside((status ?? "unknown").replaceAll("_", " ")),
      },
      {
        name: "Amount",
        kind: "number",
        cell: ({ amountMinor, currency }) => money(amountMinor, currency),
      },
    ],
    facts.transactions,
    { caption: "Payments and refunds", empty: html`No transaction of this sale is known.` },
  );

const renderTimeline = ({ facts, timeZone }: ChargebackPage): Html =>
  table(
    [
      { name: "When", cell: ({ at }) => time(at, timeZone) },
      { name: "What", cell: ({ resource, type }) => outside(type ?? resource) },
      {
        name: "Became",
        cell: ({ status }) => outside((status ?? "unknown").replaceAll("_", " ")),
      },
    ],
    facts.timeline,
    { caption: "What happened", empty: html`No state of this sale is known.` },
  );
