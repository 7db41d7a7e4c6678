import type { Random } from "../platform/random.ts";
import { alertRetryPolicy, retryDelayMs } from "../queue/retry-policy.ts";
import { DeliveryFailed } from "./channels/channel.ts";
import type { ClaimedRow, Settlement } from "./outbox.ts";

/** No channel is left alone for longer, whatever it asks for. */
const maxRetryAfterMs = 3_600_000;

/** What sending a row came to, for the row and for the lane. */
export interface Outcome {
  settlement: Settlement;
  hasFailed: boolean;
  retryAfterMs: number;
}

/** What an attempt that failed comes to: another one later, or none. Pure but for chance. */
export function outcomeOf(
  { attempts }: Pick<ClaimedRow, "attempts">,
  error: unknown,
  random: Random,
): Outcome & { settlement: { reason: string } } {
  const failure = asDeliveryFailed(error);
  const { message: reason, mayHaveArrived: maybeSent } = failure;
  const retryAfterMs = Math.min(failure.retryAfterMs ?? 0, maxRetryAfterMs);
  const delayMs = failure.isRetryable ? retryDelayMs(alertRetryPolicy, attempts, random) : null;
  return {
    settlement:
      delayMs === null
        ? { state: "failed", reason, maybeSent }
        : { state: "pending", reason, maybeSent, retryInMs: Math.max(delayMs, retryAfterMs) },
    // A message that is wrong says nothing of the channel.
    hasFailed: failure.isRetryable,
    retryAfterMs,
  };
}

/** What no channel foresaw: its words may hold anything, so they are not told. */
function asDeliveryFailed(error: unknown): DeliveryFailed {
  if (error instanceof DeliveryFailed) return error;
  const name = error instanceof Error ? error.name : typeof error;
  return new DeliveryFailed(`an unforeseen ${name}`, { isRetryable: true, mayHaveArrived: true });
}
