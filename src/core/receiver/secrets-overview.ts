import { type SignatureSchemeName, signatureScheme } from "../contract/signature/signature-scheme.ts";
import { secretProblem } from "../contract/signature/verification.ts";
import type { Encryption } from "../../platform/encryption.ts";
import type { SecretRow } from "./secrets-store.ts";
import { counted } from "../../platform/readable-text.ts";

/**
 * `pending`: its window begins later. `ending`: live, with an end set. `unusable`: it cannot be decrypted, or does not
 * fit the signature scheme.
 */
export type SecretState = "live" | "pending" | "ending" | "ended" | "unusable";

/** A secret as shown to people: everything but its value. */
export interface SecretOverview {
  id: string;
  source: "database" | "environment";
  state: SecretState;
  notBefore: Date | null;
  notAfter: Date | null;
  /** Null for the environment's secrets, whose age is unknown. */
  createdAt: Date | null;
  lastUsedAt: Date | null;
  note: string | null;
  /** Why the secret is safe to retire; null when it is not. */
  safeToRetire: string | null;
}

export interface OverviewSources {
  rows: readonly SecretRow[];
  /** Ids, newest first. */
  environmentIds: readonly string[];
  /** The last use of each secret id recorded in the inbox. */
  recentUses: ReadonlyMap<string, Date>;
  usable: (row: SecretRow) => boolean;
}

/** All secrets of the database and the environment, newest first, with those that are safe to retire. */
export function describeSecrets(
  sources: OverviewSources,
  { now, quietHours }: { now: Date; quietHours: number },
): SecretOverview[] {
  const stored = sources.rows.map((row): SecretOverview => {
    const seen = sources.recentUses.get(row.id) ?? null;
    return {
      id: row.id,
      source: "database",
      state: sources.usable(row) ? stateOf(row, now) : "unusable",
      notBefore: row.not_before,
      notAfter: row.not_after,
      createdAt: row.created_at,
      lastUsedAt: latest(row.last_used_at, seen),
      note: row.note,
      safeToRetire: null,
    };
  });
  const environment = sources.environmentIds.map((id): SecretOverview => ({
    id,
    source: "environment",
    state: "live",
    notBefore: null,
    notAfter: null,
    createdAt: null,
    lastUsedAt: sources.recentUses.get(id) ?? null,
    note: null,
    safeToRetire: null,
  }));
  const all = [...stored, ...environment];
  return all.map((each) => ({ ...each, safeToRetire: whyRetirable(each, all, now, quietHours) }));
}

/** Whether a stored secret can be decrypted and used, for `describeSecrets`. */
export function isUsableRow(
  encryption: Pick<Encryption, "decrypt"> | null,
  scheme: SignatureSchemeName,
  row: SecretRow,
): boolean {
  try {
    const { key_id: keyId, ciphertext } = row;
    const value = encryption?.decrypt({ keyId, ciphertext });
    return value !== undefined && secretProblem(signatureScheme(scheme), value) === null;
  } catch {
    return false;
  }
}

function stateOf({ not_before, not_after }: SecretRow, now: Date): SecretState {
  if (not_after !== null && not_after <= now) return "ended";
  if (not_before !== null && not_before > now) return "pending";
  return not_after === null ? "live" : "ending";
}

/**
 * The reason why a secret is safe to retire: it verified nothing for `quietHours` while another one did, so the sender
 * has switched. A secret that was never used may not have been needed yet, so only the use of a newer one counts.
 * Without traffic no secret is safe to retire.
 */
function whyRetirable(
  secret: SecretOverview,
  all: readonly SecretOverview[],
  now: Date,
  quietHours: number,
): string | null {
  if (secret.state !== "live" && secret.state !== "ending") return null;
  const quietSince = now.getTime() - quietHours * 3_600_000;
  const { lastUsedAt, createdAt } = secret;
  const successor = all.some((other) => {
    if (other.id === secret.id || (other.state !== "live" && other.state !== "ending")) return false;
    const usedOfLate = other.lastUsedAt !== null && other.lastUsedAt.getTime() > quietSince;
    return usedOfLate && (lastUsedAt !== null || isNewer(other, secret));
  });
  if (!successor) return null;
  if (lastUsedAt !== null && lastUsedAt.getTime() <= quietSince) {
    return `not used for ${counted(quietHours, "hour")}, while another one was`;
  }
  if (lastUsedAt === null && createdAt !== null && createdAt.getTime() <= quietSince) {
    return `never used in ${counted(quietHours, "hour")}, while a newer one was`;
  }
  return null;
}

function isNewer(a: SecretOverview, b: SecretOverview): boolean {
  return a.createdAt !== null && b.createdAt !== null && a.createdAt > b.createdAt;
}

function latest(a: Date | null, b: Date | null): Date | null {
  if (a === null || b === null) return a ?? b;
  return a > b ? a : b;
}
