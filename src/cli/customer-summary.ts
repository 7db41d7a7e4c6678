import type { Knex } from "knex";
import { maskedEmail } from "../alerts/facts/customers.ts";
import { redacted } from "../mirror/erasure/personal-data.ts";
import { moneyText } from "../platform/money.ts";
import { visible } from "../platform/visible-text.ts";

/** By what somebody sees whether it is the right customer. */
export interface CustomerSummary {
  id: string;
  /** Null where the mirror has no row of the customer. */
  person: { email: string | null; first_name: string | null; last_name: string | null } | null;
  orders: number;
  lastOrder: {
    order_number: string | null;
    created_at: Date | null;
    total: string | null;
    currency: string | null;
    status: string | null;
  } | null;
  erasedAt: Date | null;
}

export async function summarizeCustomer(db: Knex, id: string): Promise<CustomerSummary> {
  const orders = db("mirror.orders").where({ customer_id: id });
  const [person, count, lastOrder, erased] = await Promise.all([
    db("mirror.customers")
      .where({ id })
      .first<NonNullable<CustomerSummary["person"]> | undefined>(
        "email",
        "first_name",
        "last_name",
      ),
    orders.clone().count<{ count: string }[]>(),
    orders
      .clone()
      .orderByRaw("created_at desc nulls last, id")
      .first<NonNullable<CustomerSummary["lastOrder"]> | undefined>(
        "order_number",
        "created_at",
        "total",
        "currency",
        "status",
      ),
    db("mirror.erasures")
      .where({ customer_id: id })
      .first<{ last_at: Date } | undefined>("last_at"),
  ]);
  return {
    id,
    person: person ?? null,
    orders: Number(count[0]?.count),
    lastOrder: lastOrder ?? null,
    erasedAt: erased?.last_at ?? null,
  };
}

/** Names as initials and the address masked, as it may stay on a screen. Pure. */
export function summaryText(
  { id, person, orders, lastOrder, erasedAt }: CustomerSummary,
  timeZone: string,
): string {
  const day = (at: Date): string =>
    new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone }).format(at);
  const known = (text: string | null): string | null =>
    text === null || text === redacted ? null : text;
  const initials = [person?.first_name, person?.last_name]
    .flatMap(
      (name) =>
        known(name ?? null)
          ?.trim()
          .match(/^./u)?.[0] ?? [],
    )
    .map((letter) => `${letter}.`)
    .join(" ");
  const email = known(person?.email ?? null);
  const last =
    lastOrder === null
      ? null
      : [
          lastOrder.order_number ?? "without a number",
          ...(lastOrder.created_at === null ? [] : [`of ${day(lastOrder.created_at)}`]),
          ...(lastOrder.total === null ? [] : [moneyText(lastOrder.total, lastOrder.currency)]),
          lastOrder.status ?? "",
        ].join(", ");
  const rows: [string, string][] = [
    ["Customer", id],
    ["Name", person === null ? "not in the mirror" : initials || "none"],
    [
      "E-mail",
      person === null ? "not in the mirror" : email === null ? "none" : maskedEmail(email),
    ],
    ["Orders", String(orders)],
    ...(last === null ? [] : [["Last order", last] as [string, string]]),
    ...(erasedAt === null ? [] : [["Erased before", day(erasedAt)] as [string, string]]),
  ];
  return rows.map(([label, value]) => `  ${label.padEnd(14)}${visible(value)}\n`).join("");
}
