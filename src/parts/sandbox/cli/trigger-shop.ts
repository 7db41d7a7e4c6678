import { randomUUID } from "node:crypto";
import type { z } from "zod";
import type { ServiceClient, WriteOptions } from "../../../core/client/service-client.ts";
import type { ListEndpoint, WriteCall, WriteEndpoint } from "../../../core/contract/endpoint.ts";
import { createCustomer, deleteCustomer, updateCustomer } from "../../../core/contract/resources/customers.ts";
import { createOrder, type orderSchema, refundOrder, retryOrder } from "../../../core/contract/resources/orders.ts";
import { listPlans, planSchema } from "../../../core/contract/resources/plans.ts";
import { listProducts, productSchema } from "../../../core/contract/resources/products.ts";
import {
  cancelSubscription,
  createSubscription,
  updateSubscription,
} from "../../../core/contract/resources/subscriptions.ts";
import { TallyhookError } from "../../../platform/errors.ts";
import { moneyText } from "../../../platform/money.ts";
import type { SandboxCalls } from "./demo/sandbox-calls.ts";

/** Something that was done at the sandbox. */
export interface Deed {
  /** The id of the changed object. */
  id: string;
  /** The deed with its ids, for a person. */
  says: string;
}

export type OrderDeed = Deed & { saleId: string };

export interface Tools {
  client: Pick<ServiceClient, "send" | "listPages">;
  control: SandboxCalls["control"];
  signal: AbortSignal;
  /** Announces what will be done to the whole sandbox. */
  warn(text: string): void;
}

export type Shop = ReturnType<typeof createShop>;

const day = { seconds: 86_400, cycle: { interval: "day", interval_count: 1 } } as const;
const address = {
  first_name: "Ada",
  last_name: "Trigger",
  city: "Springfield",
  state: "IL",
  postal_code: "62701",
  country: "US",
};

/** Deeds of a client of the service, its portal and the banks, at the sandbox. Each uses a new customer, order, …. */
export function createShop({ client, control, signal, warn }: Tools) {
  async function send<E extends WriteEndpoint>(endpoint: E, call: WriteCall<E>): Promise<z.output<E["answer"]>> {
    const options: WriteOptions = { idempotencyKey: randomUUID(), signal };
    const { body } = await client.send(endpoint, call, options);
    return endpoint.answer.parse(body) as z.output<E["answer"]>;
  }

  /** The first object of a list that fits. */
  async function first<S extends z.ZodType>(
    endpoint: ListEndpoint,
    { schema, what, fits }: { schema: S; what: string; fits: (item: z.output<S>) => boolean },
  ): Promise<z.output<S>> {
    for await (const { items } of client.listPages(endpoint, { query: {} }, { signal })) {
      const found = items.map((item) => schema.parse(item)).find(fits);
      if (found !== undefined) return found;
    }
    throw new TallyhookError(`The sandbox has no ${what}. Make one, or use an empty sandbox.`);
  }

  const plan = (fits: (plan: z.output<typeof planSchema>) => boolean) =>
    first(listPlans, {
      schema: planSchema,
      what: "such active plan",
      fits: (each) => each.active && each.amount > 0 && fits(each),
    });

  async function customer(card?: string): Promise<Deed & { cardId: string }> {
    const email = `trigger-${randomUUID()}@example.test`;
    const vault = card === undefined ? {} : { svc_gateway_customer_vault_id: card };
    const made = await send(createCustomer, { body: { email, ...vault } });
    const cardId = made.default_payment_method_id ?? "";
    return { id: made.id, cardId, says: `created customer ${made.id}` };
  }

  /** Charges a card of a new customer for more than `over` minor units. */
  async function order(card: string, over = 0): Promise<OrderDeed> {
    const { id: customerId, cardId } = await customer(card);
    const { id: productId, pricing } = await first(listProducts, {
      schema: productSchema,
      what: "product that can be sold without shipping",
      fits: (each) => each.active !== false && each.requires_shipping !== true && each.pricing.amount > 0,
    });
    const quantity = Math.floor(over / pricing.amount) + 1;
    const made = await send(createOrder, {
      body: {
        customer_id: customerId,
        payment_method_id: cardId,
        items: [{ product_id: productId, quantity }],
      },
    });
    const [sale] = made.transactions ?? [];
    const says = `${paidOrNot(made)} order ${made.id} of customer ${customerId} with ${card}: ${priceOf(made)}, sale ${sale?.id}`;
    return { id: made.id, saleId: String(sale?.id), says };
  }

  /** Subscribes a new customer, by the day, so that the clock need not be moved far. */
  async function subscription(card = "card_visa", cycles = 3): Promise<Deed> {
    const { id: customerId, cardId } = await customer(card);
    const { id: planId } = await plan(() => true);
    const made = await send(createSubscription, {
      body: {
        customer_id: customerId,
        plan_id: planId,
        payment_method_id: cardId,
        billing_cycle: day.cycle,
        // Bounded, so that it is not billed endlessly when the clock is moved again.
        billing_cycles: cycles,
      },
    });
    const says = `created subscription ${made.id} of customer ${customerId} with ${card}, ${cycles} daily cycles`;
    return { id: made.id, says };
  }

  /** Makes the sandbox send the subscription unchanged: a client may only change the address. */
  async function changeAddress(id: string): Promise<Deed> {
    const address_line1 = `${randomUUID()} Main Street`;
    await send(updateSubscription, {
      params: { id },
      body: { shipping_address: { ...address, address_line1 } },
    });
    return { id, says: `changed the address of subscription ${id}` };
  }

  /** Changes that a merchant makes in the portal, for which the API has no call: the next event shows them. */
  async function changeInPortal(id: string, set: Readonly<Record<string, string>>, says: string): Promise<Deed> {
    await control("POST", "/silent", { resource: "subscriptions", id, set });
    await changeAddress(id);
    return { id, says: `${says}, and changed its address, whose event shows it` };
  }

  return {
    customer,
    order,
    subscription,
    changeAddress,

    async refund(id: string, amount?: number): Promise<Deed> {
      const body = amount === undefined ? {} : { amount };
      const made = await send(refundOrder, { params: { id }, body });
      const refund = made.transactions?.findLast(({ type }) => type === "refund");
      const what = moneyText(refund?.amount ?? null, made.currency);
      return {
        id,
        says: `refunded ${what} of order ${id}, refund ${refund?.id}: ${refund?.status}`,
      };
    },

    async retry(id: string): Promise<Deed> {
      const made = await send(retryOrder, { params: { id } });
      return { id, says: `retried order ${id}: ${paidOrNot(made)}` };
    },

    /** Changes of an order by banks and portals; the API has no call for them. */
    async moveOrder(
      id: string,
      move: "chargeback" | "chargeback_accept" | "chargeback_dismiss" | "void",
    ): Promise<Deed> {
      const { status } = await control<{ status: string }>("POST", `${createOrder.path}/${id}/${move}`, {});
      return { id, says: `${move} of order ${id}, which is now ${status}` };
    },

    async changeCustomer(id: string): Promise<Deed> {
      await send(updateCustomer, { params: { id }, body: { company: `Trigger ${randomUUID()}` } });
      return { id, says: `changed the company of customer ${id}` };
    },

    async deleteCustomer(id: string): Promise<Deed> {
      await send(deleteCustomer, { params: { id } });
      return { id, says: `deleted customer ${id}` };
    },

    async cancel(id: string): Promise<Deed> {
      await send(cancelSubscription, { params: { id } });
      return { id, says: `canceled subscription ${id}` };
    },

    pause: (id: string) => changeInPortal(id, { status: "paused" }, `paused subscription ${id} as in the portal`),
    resume: (id: string) => changeInPortal(id, { status: "active" }, `resumed subscription ${id} as in the portal`),

    async changePlan(id: string): Promise<Deed> {
      const { id: current } = await plan(() => true);
      const other = await plan((each) => each.id !== current);
      const says = `moved subscription ${id} to plan ${other.id} as in the portal`;
      return changeInPortal(id, { plan_id: other.id }, says);
    },

    /** Moves the sandbox's clock over the next charge of a daily subscription, which all others feel as well. */
    async passDay(id: string): Promise<Deed> {
      warn("The sandbox's clock will be moved a day ahead, for good: all that falls due by then is charged as well.");
      await control("POST", "/clock", { advance_seconds: day.seconds });
      return { id, says: `a day has passed for subscription ${id}` };
    },
  };
}

type Order = z.output<typeof orderSchema>;

const priceOf = ({ total, currency }: Order): string => moneyText(total, currency);

const paidOrNot = ({ status, failure_code }: Order): string =>
  status === "succeeded" ? "paid" : `${status} (${failure_code})`;
