import {
  type ResourceComparison,
  type Snapshot,
  compareWithSnapshot,
} from "../../src/parts/sandbox/cli/demo/compare.ts";
import { type Json, type TestSandbox, aCustomer, aSubscription, anOrder } from "../sandbox/harness.ts";
import type { ReconcileStand } from "./reconcile-stand.ts";

export interface Change {
  /** A row of the table "What is found when". */
  row: string;
  /** Changes something at the service, without any event; names the object that must follow in the mirror. */
  make(): Promise<{ table: string; id: string }>;
  /** At the latest after so many nights. */
  within: number;
}

export const firstDay = "2025-03-01T02:00:00.000Z";

export async function advanceDays(sandbox: TestSandbox, days: number): Promise<void> {
  await sandbox.control("POST", "/clock", { advance_seconds: days * 86_400 });
}

export async function snapshotOf(sandbox: TestSandbox): Promise<Snapshot> {
  const state = await sandbox.control("GET", "/snapshot");
  return { ...state, hardDeletedCustomers: state.hard_deleted.customers };
}

/** Objects in which mirror and service differ. */
export async function wrongObjects(
  { database }: Pick<ReconcileStand, "database">,
  sandbox: TestSandbox,
): Promise<ResourceComparison[]> {
  const comparisons = await compareWithSnapshot(database.db, await snapshotOf(sandbox));
  return comparisons.filter(({ missing, different }) => missing + different > 0);
}

/** Whether the mirror shows the last state of one object. */
export async function isInMirror(
  { database }: Pick<ReconcileStand, "database">,
  sandbox: TestSandbox,
  { table, id }: { table: string; id: string },
): Promise<boolean> {
  const snapshot = (await snapshotOf(sandbox)) as unknown as Record<string, Json[]>;
  const there = snapshot[table]?.find((object) => object.id === id);
  const here = await database.db(`mirror.${table}`).where({ id }).first();
  if (there === undefined) return here === undefined || here.deleted_at !== null;
  if (here === undefined) return false;
  return (
    here.updated_at.getTime() === Date.parse(there.updated_at) &&
    (there.status === undefined || here.status === there.status) &&
    (here.deleted ?? false) === (there.deleted ?? false)
  );
}

export interface OldObjects {
  orders: Json[];
  /** Whose the subscriptions are. */
  cardholder: Json;
  subscriptions: Record<"renewing" | "canceled" | "completing" | "declining" | "rechargeable", Json>;
  /** Its first refund fails. */
  unrefundable: Json;
  customers: Json[];
}

/** What was there long before the nights begin. */
export async function makeOldObjects(sandbox: TestSandbox): Promise<OldObjects> {
  const customer = await aCustomer(sandbox);
  const customers = [];
  for (let n = 0; n < 4; n++) customers.push(await aCustomer(sandbox));
  // With an order a customer is deleted softly, without one for good.
  await anOrder(sandbox, customers[1]);
  const orders = [];
  for (let n = 0; n < 12; n++) orders.push(await anOrder(sandbox, customer));
  const declined = await aCustomer(sandbox, "card_renewal_declined_twice");
  const refused = await aCustomer(sandbox, "card_refund_failed_once");
  return {
    orders,
    customers,
    cardholder: customer,
    unrefundable: await anOrder(sandbox, refused),
    subscriptions: {
      rechargeable: await aSubscription(sandbox, customer),
      renewing: await aSubscription(sandbox, customer),
      canceled: await aSubscription(sandbox, customer),
      completing: await aSubscription(sandbox, customer, { billing_cycles: 2 }),
      declining: await aSubscription(sandbox, declined),
    },
  };
}

/** Every row of the table, as a change that nobody announces. */
export function changesOf(sandbox: TestSandbox, old: OldObjects, rotationNights: number): Change[] {
  const [next, rotation] = [1, rotationNights];
  const order = (n: number): Json => old.orders[n];
  const sale = (of: Json): string => of.transactions[0].id;
  const silent = (resource: string, id: string, set: object) =>
    sandbox.control("POST", "/silent", { resource, id, set });
  const control = (of: Json, what: string) => sandbox.control("POST", `/orders/${of.id}/${what}`);
  const inOrders = (of: Json) => ({ table: "orders", id: of.id as string });
  const inTransactions = (id: string) => ({ table: "transactions", id });
  const inCustomers = (of: Json) => ({ table: "customers", id: of.id as string });
  return [
    {
      row: "new customer",
      within: next,
      make: async () => inCustomers(await aCustomer(sandbox)),
    },
    {
      row: "new order",
      within: next,
      make: async () => inOrders(await anOrder(sandbox, await aCustomer(sandbox))),
    },
    {
      row: "new subscription",
      within: next,
      make: async () => {
        const { id } = await aSubscription(sandbox, await aCustomer(sandbox));
        return { table: "subscriptions", id };
      },
    },
    {
      row: "new subscription that failed",
      within: next,
      make: async () => {
        const { id } = await aSubscription(sandbox, await aCustomer(sandbox, "card_visa_declined"));
        return { table: "subscriptions", id };
      },
    },
    {
      row: "refund of an old order",
      within: next,
      make: async () => {
        await sandbox.ok("POST", `/v1/orders/${order(0).id}/refund`, { amount: 100 });
        return inOrders(order(0));
      },
    },
    {
      row: "approved retry of a failed order",
      within: next,
      make: async () => {
        const customer = await aCustomer(sandbox, "card_declined_once");
        const failed = await anOrder(sandbox, customer);
        await sandbox.ok("POST", `/v1/orders/${failed.id}/retry`, {});
        return inOrders(failed);
      },
    },
    {
      row: "chargeback that the sale shows",
      within: next,
      make: async () => {
        await control(order(1), "chargeback");
        return inOrders(order(1));
      },
    },
    {
      row: "chargeback that is dismissed later",
      within: next,
      make: async () => {
        await control(order(6), "chargeback");
        return inOrders(order(6));
      },
    },
    {
      row: "refund that failed",
      within: next,
      make: async () => {
        await sandbox.ok("POST", `/v1/orders/${old.unrefundable.id}/refund`, {});
        return inOrders(old.unrefundable);
      },
    },
    {
      row: "card of a subscription changed",
      within: next,
      make: async () => {
        const { id } = old.subscriptions.rechargeable;
        const cards = `/v1/customers/${old.cardholder.id}/payment_methods`;
        const card = await sandbox.ok("POST", cards, { billing_id: "card_amex" });
        await sandbox.ok("PATCH", `/v1/subscriptions/${id}`, { payment_method_id: card.id });
        return { table: "subscriptions", id };
      },
    },
    {
      row: "chargeback that only the order shows",
      within: rotation,
      make: async () => {
        await silent("orders", order(2).id, { status: "chargeback" });
        return inOrders(order(2));
      },
    },
    {
      row: "chargeback opened and dismissed between two nights",
      within: rotation,
      make: async () => {
        await control(order(3), "chargeback");
        await control(order(3), "chargeback_dismiss");
        return inOrders(order(3));
      },
    },
    {
      row: "void of a recent transaction",
      within: next,
      make: async () => {
        const recent = await anOrder(sandbox, await aCustomer(sandbox));
        await silent("transactions", sale(recent), { status: "voided" });
        return inTransactions(sale(recent));
      },
    },
    {
      row: "void of an old transaction",
      within: rotation,
      make: async () => {
        await silent("transactions", sale(order(4)), { status: "voided" });
        return inTransactions(sale(order(4)));
      },
    },
    {
      row: "subscription canceled",
      within: next,
      make: async () => {
        const { id } = old.subscriptions.canceled;
        await sandbox.ok("DELETE", `/v1/subscriptions/${id}`);
        return { table: "subscriptions", id };
      },
    },
    {
      row: "customer edited",
      within: rotation,
      make: async () => {
        await silent("customers", old.customers[0].id, { first_name: "Grace" });
        return inCustomers(old.customers[0]);
      },
    },
    {
      row: "customer soft-deleted",
      within: rotation,
      make: async () => {
        await sandbox.ok("DELETE", `/v1/customers/${old.customers[1].id}`);
        return inCustomers(old.customers[1]);
      },
    },
    {
      row: "customer hard-deleted",
      within: rotation,
      make: async () => {
        await sandbox.ok("DELETE", `/v1/customers/${old.customers[2].id}`);
        return inCustomers(old.customers[2]);
      },
    },
    {
      row: "any other silent edit",
      within: rotation,
      make: async () => {
        await silent("orders", order(5).id, { description: "edited by hand" });
        return inOrders(order(5));
      },
    },
  ];
}

/** What becomes, on the second night, of items that the mirror knows as open. */
export function laterChangesOf(sandbox: TestSandbox, old: OldObjects): Change[] {
  const of = (row: string, id: string, make: () => Promise<unknown>): Change => ({
    row,
    within: 1,
    make: async () => {
      await make();
      return { table: "orders", id };
    },
  });
  const control = (id: string, what: string) => sandbox.control("POST", `/orders/${id}/${what}`);
  const [accepted, dismissed]: [string, string] = [old.orders[1].id, old.orders[6].id];
  const { id: refused } = old.unrefundable;
  return [
    of("chargeback accepted", accepted, () => control(accepted, "chargeback_accept")),
    of("chargeback dismissed", dismissed, () => control(dismissed, "chargeback_dismiss")),
    of("refund_failed resolved", refused, () => sandbox.ok("POST", `/v1/orders/${refused}/retry`, {})),
  ];
}

export interface OwnChange {
  row: string;
  id: string;
  /** Whether the subscription, as the service shows it, has come so far. */
  has(subscription: Json): boolean;
}

/** What becomes of subscriptions by themselves: to be found on the night after it happened. */
export const ownChangesOf = ({ subscriptions }: OldObjects): OwnChange[] => [
  {
    row: "subscription renewed",
    id: subscriptions.renewing.id,
    has: ({ current_billing_cycle: cycle }) => cycle >= 2,
  },
  {
    row: "subscription past due",
    id: subscriptions.declining.id,
    has: ({ status }) => status === "past_due",
  },
  {
    row: "subscription completed",
    id: subscriptions.completing.id,
    has: ({ status }) => status === "completed",
  },
];
