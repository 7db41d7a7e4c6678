import { NestedTooDeeply } from "./canonical.ts";
import { maskFields } from "./card-numbers/mask-fields.ts";
import { customerTable, decodeCustomer } from "./customer.ts";
import type { Decoded, Observation, Resource } from "./observation.ts";
import { decodeOrder, orderTable } from "./order.ts";
import { decodeSubscription, subscriptionTable } from "./subscription.ts";
import { decodeTransaction, transactionTable } from "./transaction.ts";

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
