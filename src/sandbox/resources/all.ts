import type { Mounted } from "../http/mount.ts";
import { accountEndpoints } from "./account.ts";
import { couponEndpoints } from "./coupons.ts";
import { customerEndpoints } from "./customers.ts";
import { orderEndpoints } from "./orders.ts";
import { paymentMethodEndpoints } from "./payment-methods.ts";
import { planEndpoints } from "./plans.ts";
import { productImageEndpoints } from "./product-images.ts";
import { productEndpoints } from "./products.ts";
import { subscriptionEndpoints } from "./subscriptions.ts";
import { teamMemberEndpoints } from "./team-members.ts";
import { transactionEndpoints } from "./transactions.ts";
import { webhookEndpointEndpoints } from "./webhook-endpoints.ts";

/** Every endpoint of the service that is built. A new resource adds its file here. */
export const allEndpoints: readonly Mounted[] = [
  ...customerEndpoints,
  ...paymentMethodEndpoints,
  ...productEndpoints,
  ...productImageEndpoints,
  ...planEndpoints,
  ...orderEndpoints,
  ...subscriptionEndpoints,
  ...transactionEndpoints,
  ...couponEndpoints,
  ...teamMemberEndpoints,
  ...webhookEndpointEndpoints,
  ...accountEndpoints,
];
