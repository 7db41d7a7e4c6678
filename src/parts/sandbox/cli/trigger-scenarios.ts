import type { ChangeKind } from "../../../core/mirror/changes/kinds.ts";
import type { Deed, Shop } from "./trigger-shop.ts";

/** A way to make the sandbox produce a change of a kind. */
export interface Scenario {
  /** Shown in help. */
  does: string;
  /** The last step is the one that makes the change. */
  run(stage: Stage): Promise<unknown>;
}

export interface Stage {
  shop: Shop;
  /** Minor units of a partial refund. */
  amount: number | undefined;
  /**
   * Runs a step and waits until the feed has its change. Each step waits, since the mirror may apply events together:
   * of states in quick succession only the last is a change.
   */
  step<D extends Deed>(kind: ChangeKind, run: () => Promise<D>): Promise<D>;
  /** Redacts a customer of this stage, here and not at the sandbox. */
  erase(id: string): Promise<Deed>;
}

type Step<D extends Deed = Deed> = (stage: Stage) => Promise<D>;

const ordered =
  (kind: ChangeKind, card = "card_visa"): Step<Deed & { saleId: string }> =>
  ({ shop, step, amount }) =>
    step(kind, () => shop.order(card, amount));

const paid = ordered("order.paid");

const disputed: Step = async (stage) => {
  const { id } = await paid(stage);
  return stage.step("order.disputed", () => stage.shop.moveOrder(id, "chargeback"));
};

const subscribed =
  (kind: ChangeKind, card?: string, cycles?: number): Step =>
  ({ shop, step }) =>
    step(kind, () => shop.subscription(card, cycles));

const started = subscribed("subscription.started");

const pastDue: Step = async (stage) => {
  const { id } = await subscribed("subscription.started", "card_renewal_declined_once")(stage);
  return stage.step("subscription.past_due", () => stage.shop.passDay(id));
};

const paused: Step = async (stage) => {
  const { id } = await started(stage);
  return stage.step("subscription.paused", () => stage.shop.pause(id));
};

/** A first step, and a second one that changes the first one's object. */
const after =
  (first: Step, kind: ChangeKind, then: (shop: Shop, id: string) => Promise<Deed>) =>
  async (stage: Stage): Promise<Deed> => {
    const { id } = await first(stage);
    return stage.step(kind, () => then(stage.shop, id));
  };

const known: Step = ({ shop, step }) => step("customer.created", () => shop.customer());

export const scenarios: Readonly<Record<ChangeKind, Scenario>> = {
  "order.created": { does: "an order", run: ordered("order.created") },
  "order.paid": { does: "an order that is paid", run: paid },
  "order.failed": {
    does: "an order on a card that is declined",
    run: ordered("order.failed", "card_visa_declined"),
  },
  "order.refunded": {
    does: "a paid order, then a refund of it, or of a part (--amount)",
    run: (stage) => after(paid, "order.refunded", (shop, id) => shop.refund(id, stage.amount))(stage),
  },
  "order.refund_failed": {
    does: "a paid order, then a refund that fails",
    run: after(ordered("order.paid", "card_refund_failed"), "order.refund_failed", (shop, id) => shop.refund(id)),
  },
  "order.disputed": { does: "a paid order, then a chargeback", run: disputed },
  "order.dispute_won": {
    does: "a chargeback that the bank dismisses",
    run: after(disputed, "order.dispute_won", (shop, id) => shop.moveOrder(id, "chargeback_dismiss")),
  },
  "order.dispute_lost": {
    does: "a chargeback that is accepted",
    run: after(disputed, "order.dispute_lost", (shop, id) => shop.moveOrder(id, "chargeback_accept")),
  },
  "order.voided": {
    does: "a paid order that is voided",
    run: after(paid, "order.voided", (shop, id) => shop.moveOrder(id, "void")),
  },
  "order.updated": {
    does: "an order that is declined, then a retry by hand that is declined, too",
    run: after(ordered("order.failed", "card_visa_declined"), "order.updated", (shop, id) => shop.retry(id)),
  },
  "subscription.created": { does: "a subscription", run: subscribed("subscription.created") },
  "subscription.started": { does: "a subscription whose first charge is paid", run: started },
  "subscription.renewed": {
    does: "a subscription, then its renewal (moves the clock)",
    run: after(started, "subscription.renewed", (shop, id) => shop.passDay(id)),
  },
  "subscription.past_due": {
    does: "a subscription, then a declined renewal (moves the clock)",
    run: pastDue,
  },
  "subscription.recovered": {
    does: "a declined renewal, then a retry that is paid (moves the clock)",
    run: after(pastDue, "subscription.recovered", (shop, id) => shop.passDay(id)),
  },
  "subscription.paused": { does: "a subscription that is paused in the portal", run: paused },
  "subscription.resumed": {
    does: "a paused subscription that is resumed in the portal",
    run: after(paused, "subscription.resumed", (shop, id) => shop.resume(id)),
  },
  "subscription.plan_changed": {
    does: "a subscription that gets another plan in the portal",
    run: after(started, "subscription.plan_changed", (shop, id) => shop.changePlan(id)),
  },
  "subscription.canceled": {
    does: "a subscription that is canceled",
    run: after(started, "subscription.canceled", (shop, id) => shop.cancel(id)),
  },
  "subscription.completed": {
    does: "a subscription of two cycles, then the last (moves the clock)",
    run: after(subscribed("subscription.started", "card_visa", 2), "subscription.completed", (shop, id) =>
      shop.passDay(id),
    ),
  },
  "subscription.updated": {
    does: "a subscription with another address",
    run: after(started, "subscription.updated", (shop, id) => shop.changeAddress(id)),
  },
  "customer.created": { does: "a customer", run: known },
  "customer.updated": {
    does: "a customer with another company",
    run: after(known, "customer.updated", (shop, id) => shop.changeCustomer(id)),
  },
  "customer.deleted": {
    does: "a customer who is deleted",
    run: after(known, "customer.deleted", (shop, id) => shop.deleteCustomer(id)),
  },
  "customer.erased": {
    does: "a customer who is redacted, as by customers erase",
    run: async (stage) => {
      const { id } = await known(stage);
      return stage.step("customer.erased", () => stage.erase(id));
    },
  },
  "transaction.created": {
    does: "the sale of a paid order",
    run: async ({ shop, step }) => step("transaction.created", async () => saleOf(await shop.order("card_visa"))),
  },
  "transaction.updated": {
    does: "the sale of an order that is charged back",
    run: async (stage) => {
      const { id, saleId } = await paid(stage);
      return stage.step("transaction.updated", async () => ({
        ...(await stage.shop.moveOrder(id, "chargeback")),
        id: saleId,
      }));
    },
  },
};

const saleOf = ({ saleId, says }: Deed & { saleId: string }): Deed => ({ id: saleId, says });
