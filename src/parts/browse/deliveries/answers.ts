import type { RejectionReason } from "../../../core/receiver/counters.ts";

/** The receivers' answers, from `receiver.answers_by_minute`. */
export type Answers = ReadonlyMap<string, number>;

type Refusal = RejectionReason | "unavailable" | "failed";

/** The meaning of each refusal, and who has to act. */
const meanings: Readonly<Record<Refusal, string>> = {
  no_match: "The signature matches no secret that is stored here.",
  stale: "The signature is right but older than the window allows: a late delivery, or a replay by an attacker.",
  no_secret: "No secret is stored, so nothing can be verified.",
  missing_header: "There was no signature.",
  duplicate_header: "There were several signatures.",
  malformed_header: "The signature cannot be read.",
  not_found: "Another path than /webhooks.",
  method_not_allowed: "Another method than POST.",
  content_encoding: "The body was compressed.",
  too_large: "The body was larger than WEBHOOK_MAX_BYTES.",
  slow: "The request did not arrive in time.",
  aborted: "The sender hung up before the body was complete.",
  malformed_request: "It was not valid HTTP.",
  unavailable: "It could not be stored in time (503). The service sends it again.",
  failed: "An error of our own (500). The service sends it again.",
};

export interface Refused {
  reason: string;
  meaning: string;
  inADay: number;
  inAWeek: number;
}

/** The refusals that happened, the commonest of the week first. */
export const refusalsOf = (day: Answers, week: Answers): Refused[] =>
  [...week]
    .filter(([reason]) => reason !== "accepted" && reason !== "duplicate")
    .map(([reason, inAWeek]) => ({
      reason,
      meaning: Object.hasOwn(meanings, reason) ? meanings[reason as Refusal] : "",
      inADay: day.get(reason) ?? 0,
      inAWeek,
    }))
    .sort((a, b) => b.inAWeek - a.inAWeek || (a.reason < b.reason ? -1 : 1));

/** The number of one answer, or of all refusals. */
export const timesOf = (answers: Answers, reason: "accepted" | "duplicate" | "refused"): number =>
  reason === "refused"
    ? [...answers].reduce((sum, [name, n]) => (name === "accepted" || name === "duplicate" ? sum : sum + n), 0)
    : (answers.get(reason) ?? 0);
