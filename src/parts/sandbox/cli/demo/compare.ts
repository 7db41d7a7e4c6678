import type { Knex } from "knex";

/** The service's own state, as `GET /_sandbox/snapshot` shows it. */
export interface Snapshot {
  orders: readonly WireObject[];
  transactions: readonly WireObject[];
  subscriptions: readonly WireObject[];
  customers: readonly WireObject[];
  /** Ids of permanently deleted customers. */
  hardDeletedCustomers: readonly string[];
}

export type WireObject = Readonly<Record<string, unknown>>;

export interface ResourceComparison {
  resource: string;
  atService: number;
  inMirror: number;
  /** Objects that exist on one side only. */
  missing: number;
  /** Objects that exist on both sides, with a difference in a compared field. */
  different: number;
  examples: string[];
}

type Values = Readonly<Record<string, string>>;

/** The columns that must equal fields of the service's object. Money first. */
const compared = {
  orders: {
    money: ["subtotal", "discount_amount", "total"],
    text: ["status", "currency", "order_number", "customer_id", "failure_code", "subscription_id"],
    time: ["created_at", "updated_at"],
    number: ["subscription_cycle"],
  },
  transactions: {
    money: ["amount"],
    text: ["type", "status", "currency", "order_id", "customer_id"],
    time: ["created_at", "updated_at"],
    number: [],
  },
  subscriptions: {
    money: ["amount"],
    text: ["status", "currency", "customer_id"],
    time: ["next_billing_date", "current_period_end", "canceled_at", "created_at", "updated_at"],
    number: ["current_billing_cycle", "total_billing_cycles"],
  },
  customers: {
    money: [],
    text: ["email", "first_name", "last_name", "phone", "company"],
    time: ["created_at", "updated_at"],
    number: [],
  },
} as const;

/** Compares every object of the mirror with the service's own state. Read-only. */
export async function compareWithSnapshot(db: Knex, snapshot: Snapshot): Promise<ResourceComparison[]> {
  const gone = new Set(snapshot.hardDeletedCustomers);
  const results: ResourceComparison[] = [];
  for (const table of ["orders", "transactions", "subscriptions", "customers"] as const) {
    const service = new Map(
      snapshot[table].map((object) => [String(object["id"]), serviceValues(table, flat(object))]),
    );
    results.push(compareMaps(table, service, await mirrorValues(db, table, gone)));
  }
  results.push(compareMaps("chargebacks", chargebacksOf(snapshot), await mirrorChargebacks(db)));
  return results;
}

function compareMaps(
  resource: string,
  service: ReadonlyMap<string, Values>,
  mirror: ReadonlyMap<string, Values>,
): ResourceComparison {
  const examples: string[] = [];
  let missing = 0;
  let different = 0;
  for (const id of new Set([...service.keys(), ...mirror.keys()])) {
    const [there, here] = [service.get(id), mirror.get(id)];
    if (there === undefined || here === undefined) {
      missing++;
      examples.push(`${id}: only ${there === undefined ? "in the mirror" : "at the service"}`);
      continue;
    }
    const fields = Object.keys(there).filter((field) => there[field] !== here[field]);
    if (fields.length === 0) continue;
    different++;
    const [field = ""] = fields;
    examples.push(`${id}: ${field} is ${there[field]} at the service, ${here[field]} in the mirror`);
  }
  return {
    resource,
    atService: service.size,
    inMirror: mirror.size,
    missing,
    different,
    examples: examples.slice(0, 3),
  };
}

/** A subscription's price belongs to its plan; the mirror keeps it in columns of the subscription. */
function flat(object: WireObject): WireObject {
  const { plan } = object;
  return typeof plan === "object" && plan !== null ? { ...plan, ...object } : object;
}

function serviceValues(table: keyof typeof compared, object: WireObject): Values {
  const { money, text, time, number } = compared[table];
  const values: Record<string, string> = {};
  for (const field of [...money, ...text, ...number]) values[field] = printed(object[field]);
  for (const field of time) values[field] = instant(object[field]);
  values["deleted"] = printed(object["deleted"] === true);
  return values;
}

async function mirrorValues(
  db: Knex,
  table: keyof typeof compared,
  gone: ReadonlySet<string>,
): Promise<Map<string, Values>> {
  const { money, text, time, number } = compared[table];
  const rows: (WireObject & { deleted_at: Date | null })[] = await db(`mirror.${table}`).select([
    "id",
    "deleted_at",
    ...money,
    ...text,
    ...number,
    ...time,
  ]);
  const values = new Map<string, Values>();
  for (const row of rows) {
    const id = String(row["id"]);
    // Permanently deleted at the service, a tombstone in the mirror: both sides agree.
    if (gone.has(id) && row.deleted_at !== null) continue;
    const result: Record<string, string> = {};
    for (const field of [...money, ...text, ...number]) result[field] = printed(row[field]);
    for (const field of time) result[field] = instant(row[field]);
    // A tombstone hides the object from reports, under either column.
    result["deleted"] = printed(row.deleted_at !== null);
    values.set(id, result);
  }
  return values;
}

const disputeStates: Readonly<Record<string, string>> = {
  chargeback: "opened",
  chargeback_accepted: "accepted",
  chargeback_dismissed: "dismissed",
};

/** The chargebacks that the statuses of the service's orders imply. */
function chargebacksOf({ orders, transactions }: Snapshot): Map<string, Values> {
  const sales = new Map(
    transactions
      .filter(({ type, status }) => type === "sale" && status !== "failed")
      .map((sale) => [String(sale["order_id"]), printed(sale["amount"])]),
  );
  return new Map(
    orders.flatMap((order): [string, Values][] => {
      const state = disputeStates[String(order["status"])];
      const id = String(order["id"]);
      const amount = sales.get(id) ?? printed(order["total"]);
      return state === undefined ? [] : [[id, { state, amount, currency: printed(order["currency"]) }]];
    }),
  );
}

async function mirrorChargebacks(db: Knex): Promise<Map<string, Values>> {
  const rows: WireObject[] = await db("mirror.chargebacks").select("key", "state", "amount", "currency");
  return new Map(
    rows.map((row) => [
      String(row["key"]),
      {
        state: printed(row["state"]),
        amount: printed(row["amount"]),
        currency: printed(row["currency"]),
      },
    ]),
  );
}

function printed(value: unknown): string {
  if (value === null || value === undefined) return "(none)";
  // The driver returns bigints as text, so 12 and "12" are the same value here.
  return typeof value === "string" ? value : JSON.stringify(value);
}

function instant(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  return typeof value === "string" ? new Date(value).toISOString() : "(none)";
}
