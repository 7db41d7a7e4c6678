import type { CouponCodeRecord, CouponRecord, RedemptionRecord } from "../resources/coupons/coupon.ts";
import type { AddressRecord, CustomerRecord } from "../resources/customers/customer.ts";
import type { OrderRecord } from "../resources/orders/order.ts";
import { type PaymentMethodRecord, type Vault, createVault } from "../resources/payment-methods/payment-method.ts";
import type { PlanRecord } from "../resources/plans/plan.ts";
import type { ProductImageRecord, ProductRecord } from "../resources/products/product.ts";
import type { SubscriptionRecord } from "../resources/subscriptions/subscription.ts";
import {
  type OutboxMessage,
  type RoleRecord,
  type TeamMemberRecord,
  seedTeam,
} from "../resources/team-members/team-member.ts";
import type { TransactionRecord } from "../resources/transactions/transaction.ts";
import type { WebhookEndpointRecord } from "../resources/webhook-endpoints/webhook-endpoint.ts";
import type { Job, SandboxClock } from "./clock.ts";
import type { EventSubject } from "./event-log.ts";
import { type IdempotencyStore, createIdempotencyStore } from "./idempotency.ts";
import type { Ids } from "./ids.ts";
import type { Mode } from "./keys.ts";
import type { Settings } from "./settings.ts";
import { type Table, createTable } from "./store/table.ts";

/** Everything that one environment (test or live) of a merchant holds, and what its operations need. */
export interface Space {
  readonly merchant: string;
  readonly mode: Mode;
  readonly ids: Ids;
  readonly time: Pick<SandboxClock, "now" | "nowMs" | "iso">;
  settings(): Settings;
  readonly customers: Table<CustomerRecord>;
  readonly paymentMethods: Table<PaymentMethodRecord>;
  readonly products: Table<ProductRecord>;
  readonly plans: Table<PlanRecord>;
  readonly orders: Table<OrderRecord>;
  readonly subscriptions: Table<SubscriptionRecord>;
  readonly transactions: Table<TransactionRecord>;
  readonly coupons: Table<CouponRecord>;
  readonly couponCodes: Table<CouponCodeRecord>;
  readonly redemptions: Table<RedemptionRecord>;
  readonly roles: Table<RoleRecord>;
  readonly teamMembers: Table<TeamMemberRecord>;
  readonly outbox: Table<OutboxMessage>;
  readonly webhookEndpoints: Table<WebhookEndpointRecord>;
  /** The pinned API version; null is the latest. */
  readonly account: { api_version: string | null };
  /** Keyed by product id, in display order. */
  readonly images: Map<string, readonly ProductImageRecord[]>;
  readonly vault: Vault;
  /** Keyed by id, with the customer they belong to. */
  readonly addresses: Map<string, { customer_id: string; address: AddressRecord }>;
  /** Lower-case e-mail address, phone and SKU → id of the owner. */
  readonly emails: Map<string, string>;
  readonly phones: Map<string, string>;
  readonly skus: Map<string, string>;
  /** Coupon code → its id. */
  readonly codes: Map<string, string>;
  /** Ids of hard-deleted objects, oldest first. */
  readonly hardDeleted: { readonly customers: string[]; readonly products: string[] };
  readonly idempotency: IdempotencyStore;
  /** The `updated_at` of a change, given the object's previous one. */
  touch(previous: string): string;
  /** Records an event and sends it to the subscribed endpoints. */
  emit(type: string, subject: EventSubject): void;
  /** The URL of a file that the sandbox serves. */
  assetUrl(path: string): string;
  schedule(kind: Exclude<Job["kind"], "delivery">, id: string, atMs: number): void;
}

export type SpaceDeps = Pick<
  Space,
  "merchant" | "mode" | "ids" | "time" | "settings" | "touch" | "emit" | "assetUrl" | "schedule"
>;

export function createSpace(deps: SpaceDeps): Space {
  const space: Space = {
    ...deps,
    customers: createTable({ sorts: { updated_at: (customer) => customer.updated_at } }),
    paymentMethods: createTable({ groups: { customer_id: (card) => card.customer_id } }),
    products: createTable({
      sorts: { updated_at: (product) => product.updated_at, name: (product) => product.name },
    }),
    plans: createTable({
      sorts: {
        updated_at: (plan) => plan.updated_at,
        name: (plan) => plan.name,
        amount: (plan) => plan.amount,
      },
    }),
    orders: createTable({
      groups: {
        customer_id: (order) => order.customer_id,
        status: (order) => order.status,
      },
      sorts: { updated_at: (order) => order.updated_at },
    }),
    subscriptions: createTable({
      groups: {
        customer_id: (subscription) => subscription.customer_id,
        plan_id: (subscription) => subscription.plan_id,
        status: (subscription) => subscription.status,
      },
      sorts: { updated_at: (subscription) => subscription.updated_at },
    }),
    transactions: createTable({
      groups: {
        customer_id: (transaction) => transaction.customer_id,
        status: (transaction) => transaction.status,
        type: (transaction) => transaction.type,
      },
      sorts: { updated_at: (transaction) => transaction.updated_at },
    }),
    coupons: createTable({
      sorts: {
        updated_at: (coupon) => coupon.updated_at,
        name: (coupon) => coupon.name,
        redemption_count: (coupon) => coupon.redemption_count,
      },
    }),
    couponCodes: createTable({ groups: { coupon_id: (code) => code.coupon_id } }),
    redemptions: createTable({
      groups: { holder: ({ coupon_id, customer_id }) => `${coupon_id} ${customer_id}` },
    }),
    roles: createTable(),
    teamMembers: createTable({
      groups: {
        email: (member) => member.email.toLowerCase(),
        status: (member) => member.status,
      },
    }),
    outbox: createTable(),
    webhookEndpoints: createTable(),
    account: { api_version: null },
    images: new Map(),
    vault: createVault(),
    addresses: new Map(),
    emails: new Map(),
    phones: new Map(),
    skus: new Map(),
    codes: new Map(),
    hardDeleted: { customers: [], products: [] },
    idempotency: createIdempotencyStore(),
  };
  seedTeam(space);
  return space;
}
