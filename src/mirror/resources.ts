import { NestedTooDeeply } from "./canonical.ts";
import { maskFields } from "./privacy/mask.ts";
import { customerTable, decodeCustomer } from "./resources/customer.ts";
import { decodeOrder, orderTable } from "./resources/order.ts";
import { decodeSubscription, subscriptionTable } from "./resources/subscription.ts";
import { decodeTransaction, transactionTable } from "./resources/transaction.ts";
import type { Decoded, Observation, Resource } from "./snapshot.ts";

/** Always in this order, so that two batches cannot wait for each other. */
export const mirrorTables = [orderTable, transactionTable, subscriptionTable, customerTable];

const decoders: Readonly<Record<Resource, (observation: Observation) => Decoded>> = {
  order: decodeOrder,
  transaction: decodeTransaction,
  subscription: decodeSubscription,
  customer: decodeCustomer,
};

/** Reads one observation without applying it; card numbers in it are masked. Pure. */
export function decode(observation: Observation): Decoded {
  try {
    const decoded = decoders[observation.resource](observation);
    return holdsNoCardNumber(decoded) ? decoded : decodeMasked(observation, decoded);
  } catch (error) {
    if (!(error instanceof NestedTooDeeply)) throw error;
    return { ok: false, thin: false, reason: "object: nested too deeply" };
  }
}

/** Noticed while the canonical text is made: to look at every field once more would be felt. */
const holdsNoCardNumber = (decoded: Decoded): boolean =>
  !("states" in decoded) || !decoded.states.some(({ mayHoldCardNumber }) => mayHoldCardNumber);

function decodeMasked(observation: Observation, decoded: Decoded): Decoded {
  const { resource, object } = observation;
  const { value, paths } = maskFields(object);
  if (paths.length === 0 || !("id" in decoded)) return decoded;
  const maskedCardNumbers = { resource, id: decoded.id, paths };
  return decoders[resource]({ ...observation, object: value, maskedCardNumbers });
}

/** Where an object is read by its id, and what must be embedded so that the answer is whole. */
export const readPlaces: Readonly<Record<Resource, { path: `/${string}`; expand?: string }>> = {
  order: { path: "/orders", expand: "transactions" },
  transaction: { path: "/transactions" },
  subscription: { path: "/subscriptions" },
  customer: { path: "/customers" },
};
