import type { Random } from "../../../platform/random.ts";
import { ApiError } from "../engine/api-error.ts";
import type { Space } from "../engine/space.ts";
import { createCoupon } from "../resources/coupons/coupon-routes.ts";
import type { CouponTerms } from "../resources/coupons/coupon.ts";
import { type CouponQuote, quoteForItems, quoteForPlan } from "../resources/coupons/redeem-coupon.ts";
import { createCustomer, deleteCustomer, updateCustomer } from "../resources/customers/customer-operations.ts";
import type { CustomerRecord } from "../resources/customers/customer.ts";
import type { PricedItem } from "../resources/orders/order.ts";
import { addCustomerVault } from "../resources/payment-methods/card-gateway.ts";
import {
  addPaymentMethod,
  cardLike,
  cardOfBilling,
  cardsOf,
} from "../resources/payment-methods/payment-method-operations.ts";
import type { PaymentMethodRecord } from "../resources/payment-methods/payment-method.ts";
import type { PlanRecord } from "../resources/plans/plan.ts";
import { type TrafficContext, between, happens, dayMs, pick } from "./script.ts";

const firstNames = ["Ada", "Grace", "Alan", "Barbara", "Edsger", "Frances", "Ken", "Radia"] as const;
const lastNames = ["Lovelace", "Hopper", "Turing", "Liskov", "Allen", "Perlman", "Ritchie"] as const;
const cities = [
  ["Portland", "OR", "97201"],
  ["Austin", "TX", "73301"],
  ["Boston", "MA", "02108"],
] as const;
const goodCards = ["card_visa", "card_mastercard", "card_amex", "card_discover"] as const;

const editRate = 0.1;
const softDeletionRate = 0.02;
const hardDeletionRate = 0.01;

/** The customers, who arrive over time. Some are edited or deleted later. */
export interface People {
  /** A customer who can order now; a new one when there is none. */
  anyone(): CustomerRecord;
  /** The customer's own good card. */
  goodCard(customer: CustomerRecord): PaymentMethodRecord;
  /** A further card of the customer, with the given behaviour. */
  cardOf(customer: CustomerRecord, token: string): PaymentMethodRecord;
}

/** The buyers and their discounts. */
export interface Market {
  readonly people: People;
  readonly campaigns: Campaigns;
}

export function createPeople(stage: TrafficContext, expected: number): People {
  const { space, random, counts } = stage;
  const present: string[] = [];

  function arrive(): CustomerRecord {
    const first_name = pick(random, firstNames);
    const last_name = pick(random, lastNames);
    const tag = space.ids.uuid().slice(0, 8);
    const customer = createCustomer(space, {
      email: `${first_name}.${last_name}.${tag}@example.test`.toLowerCase(),
      first_name,
      last_name,
      phone: happens(random, 0.3) ? `+${space.ids.processorId()}` : null,
      company: happens(random, 0.1) ? `${last_name} & Co` : null,
      shipping_address: happens(random, 0.5) ? addressOf(first_name, last_name) : null,
      metadata: happens(random, 0.2) ? { source: "traffic", tag } : {},
      svc_gateway_customer_vault_id: vaultCard(pick(random, goodCards)).vaultId,
    });
    counts.customers += 1;
    present.push(customer.id);
    planEdits(customer.id);
    return customer;
  }

  function addressOf(first_name: string, last_name: string) {
    const [city, state, postal_code] = pick(random, cities);
    const address_line1 = `${1 + Math.floor(random() * 200)} Main Street`;
    return { first_name, last_name, address_line1, city, state, postal_code, country: "US" };
  }

  function planEdits(id: string): void {
    const laterMs = () => space.time.nowMs() + between(random, 0.01, 12) * dayMs;
    if (happens(random, editRate)) stage.at(laterMs(), () => edit(id));
    if (happens(random, softDeletionRate)) stage.at(laterMs(), () => leave(id));
  }

  function edit(id: string): void {
    const customer = space.customers.get(id);
    if (customer === undefined || customer.deleted) return;
    const company = `${pick(random, lastNames)} Ltd`;
    const change = () => {
      const current = space.customers.get(id) ?? customer;
      updateCustomer(space, current, { company, metadata: { edited: true } });
      counts.customer_edits += 1;
    };
    change();
    if (!happens(random, stage.tieRate)) return;
    stage.tied(() => {
      const edited = space.customers.get(id) ?? customer;
      updateCustomer(space, edited, { company: `${company} (renamed)` });
      counts.customer_edits += 1;
    });
  }

  function leave(id: string): void {
    const customer = space.customers.get(id);
    if (customer === undefined) return;
    deleteCustomer(space, customer);
    counts.customer_deletions += 1;
    const at = present.indexOf(id);
    if (at >= 0) present.splice(at, 1);
  }

  /** A customer who registers, orders nothing and is hard-deleted. */
  function passBy(): void {
    const customer = createCustomer(space, {
      email: `passer-by.${space.ids.uuid().slice(0, 8)}@example.test`,
      first_name: pick(random, firstNames),
    });
    counts.customers += 1;
    stage.at(space.time.nowMs() + between(random, 0.1, 10) * dayMs, () => leave(customer.id));
  }

  const span = stage.endMs - stage.startMs;
  for (let i = 0; i < expected; i++) {
    // Most arrive early, so that there are customers to order.
    stage.at(stage.startMs + span * random() ** 3, () => void arrive());
  }
  for (let i = 0; i < Math.ceil(expected * hardDeletionRate); i++) {
    stage.at(stage.startMs + span * random(), passBy);
  }

  return {
    anyone() {
      const id = present[Math.floor(random() * present.length)];
      const customer = id === undefined ? undefined : space.customers.get(id);
      return customer === undefined || customer.deleted ? arrive() : customer;
    },
    goodCard(customer) {
      const own = cardsOf(space, customer.id).find(({ id }) => id === customer.default_payment_method_id);
      return own ?? addCard(customer, pick(random, goodCards));
    },
    cardOf: addCard,
  };

  function addCard(customer: CustomerRecord, token: string): PaymentMethodRecord {
    const vaulted = cardOfBilling(space, vaultCard(token).billingId, "billing_id");
    const options = { setAsDefault: false, updateSubscriptions: false };
    return addPaymentMethod(space, customer, vaulted, options);
  }

  /**
   * The ids of a card with the given behaviour. Live keys accept no test cards, so theirs are put into the gateway's
   * vault.
   */
  function vaultCard(token: string): { vaultId: string; billingId: string } {
    const card = space.mode === "live" ? cardLike(space, token) : null;
    return card === null ? { vaultId: token, billingId: token } : addCustomerVault(space, card);
  }
}

const orderRate = 0.15;
const subscriptionRate = 0.3;

type PromoTerms = Partial<CouponTerms> & Pick<CouponTerms, "name" | "duration">;

/** No promo makes an order free: an amount has a minimum above it. */
const promos: readonly PromoTerms[] = [
  { name: "TEATIME", percentage: 12.5, max_discount_amount: 1500, duration: "once" },
  { name: "REGULARS", percentage: 10, duration: "repeating", duration_in_cycles: 3 },
  { name: "FRIENDS", percentage: 5, duration: "forever" },
  { name: "FIVE-OFF", amount: 500, minimum_amount: 900, duration: "once" },
  { name: "FOUR-OFF-EU", amount: 400, minimum_amount: 800, currency: "eur", duration: "once" },
  { name: "FRIENDS-EU", amount: 150, minimum_amount: 800, currency: "eur", duration: "forever" },
];

/** Coupons that some of the traffic redeems. They draw from a stream of their own, so that they change only prices. */
export interface Campaigns {
  /** Null when the purchase has no code, or one that does not apply. */
  forItems(customerId: string, items: readonly PricedItem[], currency: string): CouponQuote | null;
  forPlan(customerId: string, plan: PlanRecord): CouponQuote | null;
}

export function createCampaigns(space: Space, random: Random): Campaigns {
  for (const terms of promos) {
    if (!space.codes.has(terms.name)) createCoupon(space, { ...terms, kind: "promo" });
  }

  function sometimes(rate: number, currency: string, quote: (code: string) => CouponQuote): CouponQuote | null {
    if (!happens(random, rate)) return null;
    const fitting = promos.filter((terms) => (terms.currency ?? "usd") === currency);
    if (fitting.length === 0) return null;
    try {
      return quote(pick(random, fitting as [PromoTerms, ...PromoTerms[]]).name);
    } catch (error) {
      if (error instanceof ApiError) return null;
      throw error;
    }
  }

  return {
    forItems: (customerId, items, currency) =>
      sometimes(orderRate, currency, (code) => quoteForItems(space, { code, customerId, items, currency })),
    forPlan: (customerId, plan) =>
      sometimes(subscriptionRate, plan.currency, (code) => quoteForPlan(space, { code, customerId, plan })),
  };
}
