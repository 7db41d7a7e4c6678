import type { Mounted } from "../http/mount.ts";
import { accountEndpoints } from "./account/account-routes.ts";
import { couponEndpoints } from "./coupons/coupon-routes.ts";
import { customerEndpoints } from "./customers/customer-routes.ts";
import { orderEndpoints } from "./orders/order-routes.ts";
import { paymentMethodEndpoints } from "./payment-methods/payment-method-routes.ts";
import { planEndpoints } from "./plans/plan-routes.ts";
import { productImageEndpoints } from "./products/product-images.ts";
import { productEndpoints } from "./products/product-routes.ts";
import { subscriptionEndpoints } from "./subscriptions/subscription-routes.ts";
import { teamMemberEndpoints } from "./team-members/team-member-routes.ts";
import { transactionEndpoints } from "./transactions/transaction-routes.ts";
import { webhookEndpointEndpoints } from "./webhook-endpoints/webhook-endpoint-routes.ts";

/** Every endpoint that the sandbox has. A new resource adds its file here. */
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
