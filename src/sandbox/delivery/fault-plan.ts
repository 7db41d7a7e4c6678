import type { Random } from "../../platform/random.ts";
import type { EventFlaw } from "../events.ts";
import type { Faults } from "../faults.ts";

/** What befalls one delivery. */
export interface FaultPlan {
  drop: boolean;
  duplicate: boolean;
  corrupt: boolean;
  delayMs: number;
  /** Held back until so many later deliveries were answered, or `maxMs` have passed. */
  reorder: { laterDeliveries: number; maxMs: number } | null;
}

const mostLaterDeliveries = 8;

export const noFault: Readonly<FaultPlan> = {
  drop: false,
  duplicate: false,
  corrupt: false,
  delayMs: 0,
  reorder: null,
};

/**
 * Draws the fate of a delivery. Always the same number of draws, so that changing one rate does not move
 * the other faults to other deliveries under the same seed.
 */
export function drawFaults(random: Random, { delivery }: Faults): FaultPlan {
  const drop = random() < delivery.drop.rate;
  const duplicate = random() < delivery.duplicate.rate;
  const corrupt = random() < delivery.corrupt.rate;
  const isDelayed = random() < delivery.delay.rate;
  const delayMs = Math.ceil(random() * delivery.delay.max_ms);
  const isReordered = random() < delivery.reorder.rate;
  const laterDeliveries = 1 + Math.floor(random() * mostLaterDeliveries);
  return {
    drop,
    duplicate,
    corrupt,
    delayMs: isDelayed ? delayMs : 0,
    reorder: isReordered ? { laterDeliveries, maxMs: delivery.reorder.max_ms } : null,
  };
}

/** What is wrong with an event's content, and whether one of an unknown type follows it. */
export function drawFlaws(
  random: Random,
  { delivery }: Faults,
): { flaw: EventFlaw | null; unknownType: boolean } {
  const thin = random() < delivery.thin_object.rate;
  const missing = random() < delivery.missing_field.rate;
  const extra = random() < delivery.extra_fields.rate;
  const unknownType = random() < delivery.unknown_type.rate;
  const flaw = thin ? "thin_object" : missing ? "missing_field" : extra ? "extra_fields" : null;
  return { flaw, unknownType };
}

/** The faults of a plan, as the log of deliveries names them. */
export function faultNames(plan: FaultPlan): (keyof FaultPlan)[] {
  const names: (keyof FaultPlan)[] = [];
  if (plan.drop) names.push("drop");
  if (plan.duplicate) names.push("duplicate");
  if (plan.corrupt) names.push("corrupt");
  if (plan.delayMs > 0) names.push("delayMs");
  if (plan.reorder !== null) names.push("reorder");
  return names;
}
