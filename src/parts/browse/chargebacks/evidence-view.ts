import { type Address, type CutList, mostRows } from "../../../core/mirror/dispute-facts.ts";
import { type Html, html } from "../../../platform/html.ts";
import { moneyText } from "../../../platform/money.ts";
import { oneLine } from "../../../platform/readable-text.ts";
import { money, outside, time } from "../../../app/dashboard/elements/values.ts";
import { table } from "../../../app/dashboard/elements/table.ts";
import { type Evidence, itemText } from "./evidence.ts";

/** The evidence as a person reads it, on the page and in the pack. */
export function renderEvidence(evidence: Evidence, timeZone: string): Html {
  return html`${renderSale(evidence, timeZone)} ${renderItems(evidence)} ${renderTransactions(evidence, timeZone)}
  ${renderEarlier(evidence, timeZone)} ${renderTimeline(evidence, timeZone)}`;
}

function renderSale({ chargeback, order, customer }: Evidence, timeZone: string): Html {
  const card = [order?.cardBrand, order?.cardLastFour == null ? null : `•••• ${order.cardLastFour}`]
    .filter((part) => part != null)
    .join(" ");
  return html`<section class="card">
    <h2>The sale</h2>
    <dl class="facts">
      ${fact("Order", chargeback.orderNumber ?? chargeback.key)}
      <dt>Disputed amount</dt>
      <dd>${money(chargeback.amountMinor, chargeback.currency)}</dd>
      <dt>Chargeback noticed</dt>
      <dd>${time(chargeback.openedAt, timeZone)}</dd>
      ${
        order?.createdAt != null &&
        html`<dt>Ordered</dt>
          <dd>${time(order.createdAt, timeZone)}</dd>`
      }
      ${order !== null && fact("Total", moneyText(order.totalMinor, order.currency))}
      ${chargeback.refundedMinor > 0n && fact("Refunded", moneyText(chargeback.refundedMinor, chargeback.currency))}
      ${fact("Subscription", order?.subscriptionId ?? null)}
      ${fact("Billing cycle", order?.cycle == null ? null : String(order.cycle))}
      ${fact("Description", order?.description ?? null)} ${fact("Card", card)}
    </dl>
    <h2>The customer</h2>
    ${
      customer === null
        ? html`<p class="hint">The mirror does not have the customer of this sale.</p>`
        : html`<dl class="facts">
            ${fact("Name", customer.name)} ${fact("E-mail", customer.email)} ${fact("Phone", customer.phone)}
            ${fact("Company", customer.company)} ${fact("Customer id", customer.id)}
            ${
              customer.createdAt !== null &&
              html`<dt>Customer since</dt>
                <dd>${time(customer.createdAt, timeZone)}</dd>`
            }
          </dl>`
    }
    <h2>Shipped to</h2>
    ${renderAddress(order?.address ?? null)}
  </section>`;
}

const fact = (name: string, value: string | null): Html | null =>
  value === null || value === ""
    ? null
    : html`<dt>${name}</dt>
        <dd><bdi>${oneLine(value, 400)}</bdi></dd>`;

const renderAddress = (address: Address | null): Html =>
  address === null
    ? html`<p class="hint">
        The order has no shipping address. The service knows no tracking: add the carrier's proof yourself.
      </p>`
    : html`<ul class="plain-list">
          ${Object.values(address).map((line) => html`<li>${outside(line)}</li>`)}
        </ul>
        <p class="hint">The service knows no tracking: add the carrier's proof of delivery yourself.</p>`;

const renderItems = ({ order }: Evidence): Html =>
  table(
    [
      {
        name: "Item",
        cell: (item) => outside(itemText(item["name"] ?? item["product_id"]) || "without a name"),
      },
      { name: "Product", kind: "id", cell: (item) => outside(itemText(item["product_id"])) },
      { name: "Quantity", kind: "number", cell: (item) => outside(itemText(item["quantity"])) },
    ],
    order?.items ?? [],
    { caption: "Items", empty: html`The mirror does not have the items of this order.` },
  );

/** A caption that names the missing part of its list. */
const captionOf = (caption: string, { cut }: Evidence, list: CutList): string =>
  cut.includes(list) ? `${caption}: the first ${mostRows[list]}, there are more` : caption;

const renderTransactions = (evidence: Evidence, timeZone: string): Html =>
  table(
    [
      {
        name: "When",
        cell: ({ createdAt }) => (createdAt === null ? "–" : time(createdAt, timeZone)),
      },
      { name: "Type", cell: ({ type }) => outside(type ?? "unknown") },
      { name: "Status", cell: ({ status }) => outside(status ?? "unknown") },
      {
        name: "Amount",
        kind: "number",
        cell: ({ amountMinor, currency }) => money(amountMinor, currency),
      },
      {
        name: "At the processor",
        kind: "id",
        cell: ({ processorTransactionId }) => outside(processorTransactionId ?? "–"),
      },
      {
        name: "Authorisation",
        cell: ({ authorizationCode }) => outside(authorizationCode ?? "–"),
      },
      { name: "Address check", cell: ({ avsResult }) => outside(avsResult ?? "–") },
      { name: "Security code", cell: ({ cvvResult }) => outside(cvvResult ?? "–") },
    ],
    evidence.transactions,
    {
      caption: captionOf("Payments and refunds", evidence, "transactions"),
      empty: html`No transaction of this sale is known.`,
    },
  );

const yesOrNo = (is: boolean): string => (is ? "yes" : "no");

const renderEarlier = (evidence: Evidence, timeZone: string): Html =>
  html`${table(
      [
        { name: "Order", cell: ({ orderNumber, id }) => outside(orderNumber ?? id) },
        { name: "Ordered", cell: ({ createdAt }) => time(createdAt, timeZone) },
        { name: "Days before", kind: "number", cell: ({ daysBefore }) => daysBefore },
        {
          name: "Amount",
          kind: "number",
          cell: ({ totalMinor, currency }) => money(totalMinor, currency),
        },
        { name: "Same card", cell: ({ isSameCard }) => yesOrNo(isSameCard) },
        { name: "Same address", cell: ({ isSameAddress }) => yesOrNo(isSameAddress) },
        { name: "May count", cell: ({ mayCount }) => yesOrNo(mayCount) },
      ],
      evidence.earlier,
      {
        caption: captionOf("Earlier undisputed orders of this customer, the latest first", evidence, "earlier"),
        empty: html`This customer has no earlier order that was paid and never disputed.`,
      },
    )}
    <p class="hint">
      Visa's Compelling Evidence 3.0 asks for two undisputed sales of the same card, 120 to 365 days before the dispute,
      with matching data, of which one is the IP address or the device. The service knows neither: add what your shop
      knows.
    </p>`;

const renderTimeline = (evidence: Evidence, timeZone: string): Html =>
  table(
    [
      { name: "When", cell: ({ at }) => time(at, timeZone) },
      {
        name: "What",
        cell: ({ resource, type }) => html`${resource}${type !== null && html` (${outside(type)})`}`,
      },
      {
        name: "Became",
        cell: ({ status }) => outside((status ?? "unknown").replaceAll("_", " ")),
      },
      { name: "Id", kind: "id", cell: ({ id }) => outside(id) },
    ],
    evidence.timeline,
    {
      caption: captionOf("What happened", evidence, "timeline"),
      empty: html`No state of this sale is known.`,
    },
  );

const style = `body{font:14px/1.5 sans-serif;margin:32px;color:#1a1f24}table{border-collapse:collapse;width:100%;margin:16px 0}
caption{text-align:left;font-weight:700}th,td{border-bottom:1px solid #ccc;padding:4px 8px;text-align:left;overflow-wrap:anywhere}
.number{text-align:right}dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 24px}dt{color:#555}dd{margin:0;overflow-wrap:anywhere}
.hint{color:#555}ul{list-style:none;padding:0}`;

/** The page as a self-contained file: it loads nothing and runs no script. */
export const evidencePage = (title: string, body: Html): string =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'" />
        <title>${title}</title>
        ${{ markup: `<style>${style}</style>` }}
      </head>
      <body>
        <h1>${title}</h1>
        ${body}
      </body>
    </html> `.markup;
