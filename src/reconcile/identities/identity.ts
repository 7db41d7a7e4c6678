/** What a broken identity means: money is wrong (critical), a state is wrong (high), something is odd (warning). */
export type IdentitySeverity = "critical" | "high" | "warning";

/** `enforce`: a breach counts; `observe`: it is kept and counts for nothing yet; `off`: not checked. */
export type IdentityMode = "enforce" | "observe" | "off";

/** What a breach is about; `currency` and `day` for sums. */
export type IdentitySubject =
  "order" | "transaction" | "subscription" | "customer" | "chargeback" | "currency" | "day";

/** A statement that holds for every right mirror. */
export interface Identity {
  /** Stable: settings, findings and reports name it. */
  name: string;
  severity: IdentitySeverity;
  /** Until a setting says otherwise. */
  mode: IdentityMode;
  subject: IdentitySubject;
  /** What holds, for people. */
  holds: string;
  /**
   * SQL over the facts (`gatherFacts`) and the mirror that gives one row a breach: `id` of the subject, `currency`,
   * `at_risk` in minor units of it (null where no sum is known), `expected` and `found` as text; `resource` where it
   * is not that of `subject`; `at`, when what is broken happened or was due, where that is later than the creation of
   * the subject: no figure of before is wrong.
   */
  breaches: string;
  /** SQL for the ids that were looked at, where that is not everything that is settled. */
  examined?: string;
}

/** One subject of which an identity does not hold. */
export interface Breach {
  resource: IdentitySubject;
  id: string;
  currency: string | null;
  /** Minor units; null where no sum is known. */
  atRiskMinor: bigint | null;
  /** ISO 8601; null where it is since the subject was created. */
  at: string | null;
  expected: string;
  found: string;
}
