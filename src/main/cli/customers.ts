import type { Command } from "commander";
import type { Knex } from "knex";
import { redacted } from "../../platform/redaction.ts";
import { moneyText } from "../../platform/money.ts";
import { withoutControls } from "../../platform/readable-text.ts";
import { maskedEmail } from "../../platform/redaction.ts";
import { registerAct } from "../../app/cli/act-command.ts";
import { type Erased, assertKnown, erasing } from "../../app/erase-customer.ts";
import type { CliContext } from "../../app/cli/context.ts";

export function registerCustomers(program: Command, context: CliContext): void {
  const customers = program.command("customers");
  registerAct(customers, context, {
    act: erasing,
    name: "erase",
    description:
      "redact one customer for good in mirror, history, stored events, findings, alerts and notes, after asking",
    takes: {
      customer: { flags: "<id>", says: "the customer's id" },
      reason: { flags: "--reason <text>", says: "the reason, for the audit; name no customer" },
    },
    by: {
      who: "person",
      says: "name of the person who asks for it, for the audit (default: this system's user, if a person)",
    },
    deps: ({ db, runtime: { config, parts } }) => ({ db, config, parts }),
    async ask(deps, { customer }) {
      await assertKnown(deps, customer);
      // Shown on the terminal only: personal data must not be logged.
      const summary = summaryText(await summarizeCustomer(deps.db, customer), deps.config.timeZone);
      const question = "This cannot be undone. Redact everything that identifies this customer?";
      return { question: `${summary}${question}`, decidedOn: null };
    },
    say(erased) {
      context.stderr.write(warningsOf(erased));
      const counts = Object.entries(erased.counts).map(([what, n]) => `${what} ${n}`);
      return `${erased.customerId} is redacted: ${counts.join(", ")}.\n`;
    },
    json: (erased) => erased,
  });
}

const warningsOf = ({ atService, sealed }: Erased): string =>
  (atService
    ? "tallyhook: the service still has this customer. Delete it there as well; until then, what it sends is redacted " +
      "on arrival.\n"
    : "") +
  (sealed.length > 0
    ? `tallyhook: the reasons of closed months name this customer, and stay under their seals: ${sealed.join(", ")}.\n`
    : "");

/** Facts with which a person checks that this is the right customer. */
export interface CustomerSummary {
  id: string;
  /** Null if the mirror has no row of the customer. */
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
      .first<NonNullable<CustomerSummary["person"]> | undefined>("email", "first_name", "last_name"),
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
    db("mirror.erasures").where({ customer_id: id }).first<{ last_at: Date } | undefined>("last_at"),
  ]);
  return {
    id,
    person: person ?? null,
    orders: Number(count[0]?.count),
    lastOrder: lastOrder ?? null,
    erasedAt: erased?.last_at ?? null,
  };
}

/** Shows names as initials and masks the address, so that the text may stay on a screen. */
export function summaryText({ id, person, orders, lastOrder, erasedAt }: CustomerSummary, timeZone: string): string {
  const day = (at: Date): string => new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone }).format(at);
  const known = (text: string | null): string | null => (text === null || text === redacted ? null : text);
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
    ["E-mail", person === null ? "not in the mirror" : email === null ? "none" : maskedEmail(email)],
    ["Orders", String(orders)],
    ...(last === null ? [] : [["Last order", last] as [string, string]]),
    ...(erasedAt === null ? [] : [["Erased before", day(erasedAt)] as [string, string]]),
  ];
  return rows.map(([label, value]) => `  ${label.padEnd(14)}${withoutControls(value)}\n`).join("");
}
