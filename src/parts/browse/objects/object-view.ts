import { canonicalTimestamp } from "../../../core/contract/timestamp.ts";
import { isObject } from "../../../core/contract/wire-types.ts";
import type { FieldBlame } from "../../../core/mirror/blame/blame.ts";
import type { KnownObject } from "../../../core/mirror/blame/object-history.ts";
import type { CustomerName } from "../../../core/mirror/customer-names.ts";
import type { ListedCharge } from "../../../core/mirror/charges.ts";
import type { ListedObject, StoredChargeback } from "../../../core/mirror/look-up.ts";
import { type Html, type HtmlPart, html } from "../../../platform/html.ts";
import { redacted } from "../../../platform/redaction.ts";
import { counted } from "../../../platform/readable-text.ts";
import type { ObjectFinding } from "../../../app/answers.ts";
import {
  copyableId,
  money,
  objectLink,
  objectPath,
  outside,
  shortId,
  state as stateBadge,
  sums,
  time,
} from "../../../app/dashboard/elements/values.ts";
import { type BlameSection, renderBlame } from "./blame-view.ts";
import { type ValueStyle, fieldValue } from "./field-value.ts";
import { type FailedEvent, failedLines } from "./failed-events-view.ts";
import { renderObjects, statusBadge } from "./list-view.ts";
import { type PastChoice, renderPastChoice, renderPastNotice } from "./past.ts";
import { type Recognized, nearestDouble, known, nameIn } from "./recognized.ts";
import { exactTime } from "./source.ts";
import { type TimelineSection, renderTimeline } from "./timeline-view.ts";
import { statusWords } from "./words.ts";

/** Objects that belong to the one of the page. */
export interface RelatedList {
  name: string;
  rows: readonly ListedObject[];
  hasMore: boolean;
}

export interface ObjectPage {
  object: KnownObject;
  fields: readonly FieldBlame[];
  /** Manually edited columns. */
  edited: readonly string[];
  /** Null: hidden from the visitor, or no customer. */
  person: CustomerName | null;
  /** Null: no order, or the past. */
  charge: ListedCharge | null;
  recognized: Recognized;
  related: readonly RelatedList[];
  chargebacks: readonly StoredChargeback[];
  findings: readonly ObjectFinding[];
  failed: readonly FailedEvent[];
  mayHeal: boolean;
  style: ValueStyle;
  past: PastChoice;
  blame: BlameSection;
  /** Null for a past state, which has none of its own. */
  timeline: TimelineSection | null;
}

export function renderObject(page: ObjectPage): Html {
  const { past, blame, timeline } = page;
  return html`${past.at !== null && renderPastNotice(past.path, past.at, past.timeZone)}
  ${past.at === null && renderTroubles(page)} ${renderHeader(page)} ${past.at === null && renderDoubles(page)}
  ${past.at === null && renderRelated(page)} ${timeline !== null && renderTimeline(timeline)} ${renderBlame(blame)}
  ${renderPastChoice(past)}`;
}

function renderTroubles({ object, edited, findings, failed, mayHeal, past }: ObjectPage): Html | null {
  const { resource, id, hasMore, erasedAt } = object;
  const heal = `/reconciliation/heal/${encodeURIComponent(resource)}/${encodeURIComponent(id)}`;
  const troubles: Html[] = [];
  if (edited.length > 0) {
    troubles.push(
      html`The mirror's row was edited by hand: ${edited.join(", ")}. The values below are what the service said.
      ${mayHeal ? html`<a href="${heal}">Heal it</a>` : "A person with the role operator can heal it."}`,
    );
  }
  for (const finding of findings) {
    troubles.push(
      html`<a href="/reconciliation/findings/${finding.id}">Finding ${finding.id}</a>:
        ${finding.identity ?? finding.class.replaceAll("_", " ")},
        ${finding.state}${finding.amount_at_risk_minor !== null && html`, ${money(finding.amount_at_risk_minor, finding.currency)} at risk`}`,
    );
  }
  troubles.push(...failedLines(failed, id, past.timeZone));
  return html`${
    troubles.length > 0 &&
    html`<section class="problem">
      <h2>${counted(troubles.length, "thing is", "things are")} not right here</h2>
      <ul>
        ${troubles.map((trouble) => html`<li>${trouble}</li>`)}
      </ul>
    </section>`
  }
  ${erasedAt !== null && html`<p class="notice">The person was erased on request. What identified them is gone, here and in the history.</p>`}
  ${hasMore && html`<p class="notice">It has very many states. Fields are explained by the newest 200 of each kind.</p>`}`;
}

function renderHeader(page: ObjectPage): Html {
  const { object, fields, style, past } = page;
  const { resource, id } = object;
  const valueOf = new Map(fields.map(({ field, value }) => [field, value]));
  const status = valueOf.get("status");
  const amount = ["total", "amount", "plan.amount"].flatMap((field) => valueOf.get(field) ?? [])[0];
  const isDeleted = valueOf.has("deleted_at") || valueOf.get("deleted") === true;
  const said = typeof status === "string" ? statusWords(resource, status).means : "";
  const badges = html`${typeof status === "string" && statusBadge(resource, status)}
  ${typeof amount === "number" && html`<span class="stat">${money(amount, style.currency)}</span>`}
  ${isDeleted && stateBadge("Deleted at the service", "warn")}`;
  return html`<section class="card">
    ${(typeof status === "string" || typeof amount === "number" || isDeleted) && html`<div class="row">${badges}</div>`}
    ${said !== "" && html`<p>${said}</p>`}
    <dl class="facts">
      ${factsOf(page, valueOf).map(
        ([name, value]) =>
          html`<dt>${name}</dt>
            <dd>${value}</dd>`,
      )}
      <dt>Id</dt>
      <dd class="hint">${copyableId(id)}</dd>
    </dl>
    <nav class="row hint" aria-label="More about it">
      ${past.at === null && html`<a href="#timeline">Timeline</a>`}
      <a href="#blame">Why each field has its value</a>
      <a href="#past">As it was at another time</a>
      ${past.at === null && elsewhere(page)}
    </nav>
  </section>`;
}

const elsewhere = ({ object: { resource, id }, mayHeal }: ObjectPage): Html =>
  html`<a href="/events?object=${encodeURIComponent(id)}">Its events</a>
    <a href="/alerts?state=all&amp;object=${encodeURIComponent(id)}">Its alerts</a>
    <a href="/reconciliation/findings?object=${encodeURIComponent(id)}&amp;state=any">Its findings</a>
    ${mayHeal && html`<a href="/reconciliation/heal/${encodeURIComponent(resource)}/${encodeURIComponent(id)}">Compare with the service and heal</a>`}`;

/** What looks like a charge that was made twice: of the order, or among the orders of the list. */
function renderDoubles({ object, charge, related, recognized, style }: ObjectPage): Html | null {
  const listed =
    charge === null ? related.flatMap(({ rows }) => rows).filter(({ resource }) => resource === "order") : [];
  const charges = charge === null ? listed.flatMap(({ id }) => recognized.charges.get(id) ?? []) : [charge];
  const pairs = charges.flatMap((one) => {
    const double = nearestDouble(recognized, one);
    return double === null ? [] : [{ one, ...double }];
  });
  // Of two that are both in the list, one says it.
  const told = pairs.filter(
    ({ one, other }, n) =>
      !pairs.slice(0, n).some((before) => before.one.id === other.id && before.other.id === one.id),
  );
  if (told.length === 0) return null;
  return html`<section class="problem">
    <h2>${told.length === 1 ? "It looks like a double charge" : `There may be ${told.length} double charges`}</h2>
    <ul>
      ${told
        .slice(0, mostDoubles)
        .map(
          ({ one, other, words }) =>
            html`<li>
              ${money(other.amount, other.currency)}: ${object.id === one.id ? "this order" : orderLink(one)} and
              ${orderLink(other)}. ${words}; the later one at ${exactTime(later(one, other), style.timeZone)}.
            </li>`,
        )}
    </ul>
    <p>Compare what was ordered, then refund one where it was not meant.</p>
  </section>`;
}

const mostDoubles = 3;

const orderLink = ({ id, orderNumber }: ListedCharge): Html =>
  html`<a href="${objectPath("order", id)}">${orderNumber === null ? shortId(id) : outside(orderNumber, 60)}</a>`;

const later = (a: ListedCharge, b: ListedCharge): Date =>
  new Date(Math.max(a.at?.getTime() ?? 0, b.at?.getTime() ?? 0));

type Values = ReadonlyMap<string, unknown>;

function factsOf(page: ObjectPage, values: Values): [string, HtmlPart][] {
  const { style, person, object } = page;
  const facts: [string, HtmlPart][] = [];
  const add = (name: string, field: string): void => {
    const value = values.get(field);
    if (value !== undefined && value !== null) facts.push([name, fieldValue(field, value, style)]);
  };
  const link = (name: string, resource: string, field: string): void => {
    const id = values.get(field);
    if (typeof id === "string") facts.push([name, objectLink(resource, id)]);
  };
  add("Order number", "order_number");
  if (object.resource === "transaction") add("Kind", "type");
  const customer = values.get("customer_id");
  if (person !== null && typeof customer === "string") {
    const name = known(person.name);
    facts.push([
      "Customer",
      html`<a href="${objectPath("customer", customer)}">${name === null ? shortId(customer) : outside(name, 200)}</a>`,
    ]);
    facts.push(["E-mail address", person.email === null ? "–" : fieldValue("email", person.email, style)]);
  } else link("Customer", "customer", "customer_id");
  link("Order", "order", "order_id");
  link("Subscription", "subscription", "subscription_id");
  add("Billing cycle", "subscription_cycle");
  add("Billing cycle", "current_billing_cycle");
  if (object.resource === "customer") {
    add("E-mail address", "email");
    add("Phone", "phone");
    add("Company", "company");
    if (nameIn(values) === null) {
      add("First name", "first_name");
      add("Last name", "last_name");
    }
    facts.push(...accountFacts(page));
  }
  add("Plan", "plan.name");
  const [brand, digits] = ["payment_method.card_brand", "payment_method.card_last_four"].map((field) =>
    values.get(field),
  );
  if (digits !== undefined && style.showsPersons) {
    facts.push([
      "Card",
      html`${typeof brand === "string" && outside(brand, 40)} ending in ${fieldValue("", digits, style)}`,
    ]);
  }
  add("Why it was declined", "failure_code");
  add("In the bank's words", "failure_reason");
  add("Attempts", "attempt_count");
  add("Next attempt", "next_retry_at");
  add("Renews", "next_billing_date");
  add("Canceled", "canceled_at");
  const items = itemsOf(object.row?.["items"]);
  if (items.length > 0) {
    const list = items.slice(0, mostItems).map((item) => html`<li>${item}</li>`);
    facts.push([
      "Items",
      html`<ul class="plain-list">
        ${list}
      </ul>`,
    ]);
  }
  add("Description", "description");
  const createdAt = values.get("created_at");
  if (typeof createdAt === "string" && canonicalTimestamp(createdAt) !== null) {
    facts.push(["Created", exactTime(new Date(createdAt), style.timeZone)]);
  }
  add("Last changed", "updated_at");
  add("Deleted", "deleted_at");
  return facts;
}

/** What a customer has paid, and the state of the newest subscription. */
function accountFacts({ related, recognized }: ObjectPage): [string, HtmlPart][] {
  const listOf = (name: string) => related.find((list) => list.name === name);
  const [orders, subscriptions] = [listOf("orders"), listOf("subscriptions")];
  const facts: [string, HtmlPart][] = [];
  const paid = orders?.rows.filter(({ id }) => recognized.charges.get(id)?.tookMoney === true) ?? [];
  if (paid.length > 0) {
    const amounts = paid.map(({ amount, currency }) => ({
      totalMinor: amount === null ? null : BigInt(amount),
      currency,
    }));
    const of =
      orders?.hasMore === true
        ? `in the newest ${orders.rows.length} orders`
        : `in ${counted(paid.length, "paid order")}`;
    facts.push(["Charged", html`${sums(amounts)} <span class="hint">${of}, refunds not taken off</span>`]);
  }
  const [newest] = subscriptions?.rows ?? [];
  if (newest !== undefined) {
    const amount = newest.amount === null ? null : money(newest.amount, newest.currency);
    facts.push([
      "Subscription",
      html`<a href="${objectPath("subscription", newest.id)}"
        >${statusBadge("subscription", newest.status)} ${amount}</a
      >`,
    ]);
  }
  return facts;
}

const mostItems = 20;

/** The ordered items with their quantities. */
function itemsOf(items: unknown): Html[] {
  if (!Array.isArray(items)) return [];
  return items.flatMap((item: unknown) => {
    if (!isObject(item)) return [];
    const { quantity, name, product_id: product } = item;
    const what = [name, product].find((each) => typeof each === "string" && each !== redacted);
    return [
      html`${typeof quantity === "number" ? quantity : 1} × ${outside(typeof what === "string" ? what : "an item", 100)}`,
    ];
  });
}

function renderRelated({ object, related, recognized, chargebacks, style, fields }: ObjectPage): Html {
  const { resource, id } = object;
  const status = fields.find(({ field }) => field === "status")?.value;
  return html`${chargebacks.map((chargeback) => renderChargebackLine(chargeback, style.timeZone))}
  ${resource === "order" && status === "failed" && html`<p><a href="/dunning/${encodeURIComponent(id)}">See its attempts and its assignee</a></p>`}
  ${related.map(
    ({ name, rows, hasMore }) =>
      html`<section>
        <h2>${name.charAt(0).toUpperCase() + name.slice(1)}</h2>
        ${
          rows.length === 0
            ? html`<p class="hint">No ${name} are known.</p>`
            : renderObjects(rows, {
                caption: `The newest ${name}`,
                empty: html``,
                recognized,
                timeZone: style.timeZone,
              })
        }
        ${hasMore && html`<p><a href="${objectPath(resource, id)}/${name}">All its ${name}</a></p>`}
      </section>`,
  )}`;
}

function renderChargebackLine(chargeback: StoredChargeback, timeZone: string): Html {
  const { key, state: status, amount, currency, openedAt } = chargeback;
  return html`<p class="card row">
    <a href="${objectPath("chargeback", key)}">Chargeback</a> ${statusBadge("chargeback", status)}
    ${amountOf(amount, currency)} ${openedAt !== null && html`opened ${time(openedAt, timeZone)}`}
  </p>`;
}

const amountOf = (amount: string | null, currency: string | null): HtmlPart =>
  amount === null ? "an unknown amount" : money(amount, currency);

export function renderChargeback(chargeback: StoredChargeback, timeZone: string): Html {
  const { key, orderId, transactionId, state: status, amount, currency } = chargeback;
  const times: [string, Date | null][] = [
    ["Opened", chargeback.openedAt],
    ["Accepted", chargeback.acceptedAt],
    ["Dismissed", chargeback.dismissedAt],
    ["Ended", chargeback.endedAt],
  ];
  return html`<section class="card">
    <div class="row">
      ${statusBadge("chargeback", status)} <span class="stat">${amountOf(amount, currency)}</span>
      <span class="end"><a href="/chargebacks/${encodeURIComponent(key)}">Open the case</a></span>
    </div>
    <p>${statusWords("chargeback", status).means}</p>
    <dl class="facts">
      ${
        orderId !== null &&
        html`<dt>Order</dt>
          <dd>${objectLink("order", orderId)}</dd>`
      }
      ${
        transactionId !== null &&
        html`<dt>Transaction</dt>
          <dd>${objectLink("transaction", transactionId)}</dd>`
      }
      ${times.flatMap(([name, at]) =>
        at === null
          ? []
          : [
              html`<dt>${name}</dt>
                <dd>${time(at, timeZone)}</dd>`,
            ],
      )}
    </dl>
    <p class="hint">
      The service does not show chargebacks by themselves. This one is derived from every state of its order and its
      sale, so its timeline is theirs.
    </p>
  </section>`;
}
