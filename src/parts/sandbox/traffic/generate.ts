import { seededRandom } from "../../../platform/random.ts";
import { ApiError } from "../engine/api-error.ts";
import type { Space } from "../engine/space.ts";
import type { State } from "../engine/state.ts";
import { createCampaigns, createPeople } from "./market.ts";
import { type TrafficCounts, createScript, dayMs } from "./script.ts";
import { planShopping } from "./shopping.ts";
import { planSubscribing } from "./subscribing.ts";

export interface TrafficOptions {
  orders: number;
  subscriptions: number;
  refunds: number;
  declines: number;
  chargebacks: number;
  seed: string;
  /** How much sandbox time the traffic covers. */
  days: number;
  /** Whether the traffic ends now instead of beginning now. Only for a sandbox without any activity. */
  past: boolean;
  tieRate: number;
}

export interface TrafficResult {
  counts: TrafficCounts & { renewals: number; events: number };
  from: string;
  to: string;
}

const ordersPerCustomer = 3;

/**
 * Generates a merchant's traffic: orders, subscriptions with their renewals and dunning, coupons, refunds, retries,
 * chargebacks, edits and deletions. The clock is stopped and moved through `days` of sandbox time, so that the same
 * seed after the same calls gives the same ids, amounts and events at any speed of this machine. Resolves when all is
 * generated; deliveries may still be in progress.
 */
export async function generateTraffic(state: State, space: Space, wish: TrafficOptions): Promise<TrafficResult> {
  if (wish.past) beginEarlier(state, space, wish.days);
  const eventsBefore = state.events.total;
  const ordersBefore = space.orders.size;
  return state.time.drive(async (moveTo) => {
    const startMs = state.time.nowMs();
    const from = state.time.iso();
    const script = createScript(
      {
        space,
        random: seededRandom(`traffic/${wish.seed}`),
        setMayTie: (mayTie) => {
          state.mayTie = mayTie;
        },
      },
      { startMs, endMs: startMs + Math.round(wish.days * dayMs), tieRate: wish.tieRate },
    );
    const wanted = Math.ceil((wish.orders + wish.subscriptions) / ordersPerCustomer);
    const people = createPeople(script, wanted);
    const campaigns = createCampaigns(space, seededRandom(`traffic/${wish.seed}/coupons`));
    const market = { people, campaigns };
    planShopping(script, market, withinOrders(wish));
    planSubscribing(script, market, wish.subscriptions);
    await script.play(moveTo);

    const { orders, subscriptions } = script.counts;
    const renewals = space.orders.size - ordersBefore - orders - subscriptions;
    const events = state.events.total - eventsBefore;
    return { counts: { ...script.counts, renewals, events }, from, to: state.time.iso() };
  });
}

/** Sets the clock back. It keeps its mode, real or manual. Refused once anything has happened. */
function beginEarlier(state: State, space: Space, days: number): void {
  const { time } = state;
  if (space.orders.size + space.customers.size + state.events.total + time.planned().length > 0) {
    throw new ApiError(
      "validation_error",
      "Traffic in the past needs a sandbox in which nothing has happened yet: POST /_sandbox/reset first.",
    );
  }
  time.restore({ nowMs: time.nowMs() - Math.round(days * dayMs), mode: time.mode });
}

/** Fits the wish to the number of orders. Each order has one kind; what exceeds the orders is left out. */
function withinOrders({ orders, declines, chargebacks, refunds }: TrafficOptions) {
  const declined = Math.min(declines, orders);
  const disputed = Math.min(chargebacks, orders - declined);
  const refunded = Math.min(refunds, orders - declined - disputed);
  return { orders, declines: declined, chargebacks: disputed, refunds: refunded };
}
