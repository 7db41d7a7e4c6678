import type { Random } from "../platform/random.ts";
import { alertRetryPolicy, retryDelayMs } from "../queue/retry-policy.ts";
import { DeliveryFailed } from "./channels/channel.ts";
import type { ClaimedRow, Settlement } from "./outbox.ts";

/** No channel is left alone for longer, whatever it asks for. */
const maxRetryAfterMs = 3_600_000;
/** A message that nobody took for so long is given up: an outage may last a weekend. */
export const giveUpAfterMs = 3 * 86_400_000;

/** Why an attempt failed. `isRetryable` is false where the message itself is wrong, which says nothing of the channel. */
export interface FailedAttempt {
  reason: string;
  /** The other side may have it all the same. */
  maybeSent: boolean;
  isRetryable: boolean;
  /** How long the other side asks to wait; zero where it does not. */
  retryAfterMs: number;
}

/** What a channel threw, as the sender sees it. Pure. */
export function failedAttempt(error: unknown): FailedAttempt {
  const failure = asDeliveryFailed(error);
  return {
    reason: failure.message,
    maybeSent: failure.mayHaveArrived,
    isRetryable: failure.isRetryable,
    retryAfterMs: Math.min(failure.retryAfterMs ?? 0, maxRetryAfterMs),
  };
}

/**
 * What becomes of a message that was not taken. While its channel takes others, it waits longer each time; a channel that
 * takes nothing keeps every message due, so that the oldest goes first when it is back. Pure but for chance.
 */
export function settlementOf(
  { attempts, waitedMs }: Pick<ClaimedRow, "attempts" | "waitedMs">,
  { reason, maybeSent, isRetryable, retryAfterMs }: FailedAttempt,
  { isChannelTaking, random }: { isChannelTaking: boolean; random: Random },
): Settlement & { reason: string } {
  if (!isRetryable || waitedMs >= giveUpAfterMs) return { state: "failed", reason, maybeSent };
  const ownMs = isChannelTaking ? (retryDelayMs(alertRetryPolicy, attempts, random) ?? 0) : 0;
  return { state: "pending", reason, maybeSent, retryInMs: Math.max(ownMs, retryAfterMs) };
}

/** What no channel foresaw: its words may hold anything, so they are not told. */
function asDeliveryFailed(error: unknown): DeliveryFailed {
  if (error instanceof DeliveryFailed) return error;
  const name = error instanceof Error ? error.name : typeof error;
  return new DeliveryFailed(`an unforeseen ${name}`, { isRetryable: true, mayHaveArrived: true });
}
