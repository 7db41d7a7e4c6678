/** The stages of a declined renewal. `recovered` ones were paid in the end. */
export const dunningStages = ["first", "retrying", "last-retry", "final", "recovered"] as const;

export type DunningStage = (typeof dunningStages)[number];

/** Dunning settings of a deployment: the same for its alerts, where it has them. */
export interface DunningSettings {
  /** After this attempt, one retry is left. The interface does not say which retry is the last. */
  lastAttempt: number;
  /** A last retry within so many hours is near. */
  withinHours: number;
  /** From this attempt on, billing staff write to the customer, although a retry may still succeed. */
  contactAtAttempt: number;
}

export const dunningDefaults: DunningSettings = {
  lastAttempt: 3,
  withinHours: 48,
  contactAtAttempt: 3,
};

const hourMs = 3_600_000;

/** The stage of a renewal that is not paid. `nextRetryAt`: null where none follows. */
export function dunningStageOf(
  { attempts, nextRetryAt }: { attempts: number; nextRetryAt: Date | null | "unknown" },
  { lastAttempt, withinHours }: DunningSettings,
  now: Date,
): Exclude<DunningStage, "recovered"> {
  if (nextRetryAt === null) return "final";
  const isNear = nextRetryAt !== "unknown" && nextRetryAt.getTime() - now.getTime() <= withinHours * hourMs;
  if (attempts >= lastAttempt && isNear) return "last-retry";
  return attempts <= 1 ? "first" : "retrying";
}
