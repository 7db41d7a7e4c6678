import { chargebacks } from "./chargebacks.ts";
import type { Identity } from "./identity.ts";
import { orderAmounts } from "./order-amounts.ts";
import { orderCharges } from "./order-charges.ts";
import { records } from "./records.ts";
import { refunds } from "./refunds.ts";
import { subscriptionCharges } from "./subscription-charges.ts";
import { subscriptionStates } from "./subscription-states.ts";
import { sums } from "./sums.ts";

/** Every identity, in the order in which people read them. */
export const allIdentities: readonly Identity[] = [
  ...orderAmounts,
  ...orderCharges,
  ...refunds,
  ...chargebacks,
  ...subscriptionCharges,
  ...subscriptionStates,
  ...records,
  ...sums,
];
