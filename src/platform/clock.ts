/** The only source of time. Code that needs "now" is given a clock. */
export interface Clock {
  now(): Date;
}

/** The machine's clock: signatures, time-outs, validity windows of secrets. */
export const wallClock: Clock = { now: () => new Date() };

/** A clock that follows the service's, so that moving a sandbox's clock also moves "now". */
export interface ServiceClock extends Clock {
  /** Takes the `Date` header of an answer of the service. */
  observe(serviceDate: Date): void;
}

/**
 * No answer is in flight longer than this. A `Date` that is older by more means that the service's clock was set back.
 */
const maxAnswerAgeMs = 60_000;

/**
 * The service's time: the wall clock plus the offset of the newest `Date` header seen. Before the first answer it is
 * the wall clock. An answer that arrives after a newer one is ignored. `Date` has whole seconds, so this clock may lag
 * the service by up to a second, and never runs ahead of it for that reason.
 */
export function createServiceClock(wall: Clock): ServiceClock {
  let offsetMs = 0;
  let newestMs = Number.NEGATIVE_INFINITY;
  return {
    now: () => new Date(wall.now().getTime() + offsetMs),
    observe(serviceDate) {
      const observedMs = serviceDate.getTime();
      if (Number.isNaN(observedMs)) return;
      const isLateAnswer = observedMs < newestMs && newestMs - observedMs < maxAnswerAgeMs;
      if (isLateAnswer) return;
      newestMs = observedMs;
      offsetMs = observedMs - wall.now().getTime();
    },
  };
}
