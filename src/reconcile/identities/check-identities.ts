import type { Knex } from "knex";
import { sqlArray } from "../../platform/sql-array.ts";
import { healFindings, recordFindings } from "../findings.ts";
import type { Finding } from "../findings.ts";
import { allIdentities } from "./all.ts";
import { gatherFacts } from "./facts.ts";
import type { IdentityMoment } from "./facts.ts";
import { findBreaches, findExamined } from "./find-breaches.ts";
import type { BreachesFound } from "./find-breaches.ts";
import type { Breach, Identity, IdentityMode, IdentitySeverity } from "./identity.ts";
import { identityModesOf } from "./modes.ts";

export interface IdentityResult {
  name: string;
  severity: IdentitySeverity;
  mode: Exclude<IdentityMode, "off">;
  /** Subjects of which it does not hold. */
  breaches: number;
  /** Findings that are new, or here again. */
  opened: number;
  healed: number;
}

export interface IdentityOptions {
  /** What RECONCILE_IDENTITIES says. */
  modes: Readonly<Record<string, IdentityMode>>;
  /** Null outside of a run. */
  run: number | null;
  timeZone: string;
}

/**
 * Checks every identity that is not off on one moment of the mirror, and keeps the breaches as findings: new ones
 * open, those that no longer are heal, those about objects that changed since the walk stay as they are. Opens its
 * own transactions; the mirror is only read. Idempotent.
 */
export async function checkIdentities(
  db: Knex,
  { now, asOf }: Pick<IdentityMoment, "now" | "asOf">,
  { modes, run, timeZone }: IdentityOptions,
): Promise<IdentityResult[]> {
  const modeOf = identityModesOf(modes);
  const checked = allIdentities.flatMap((identity) => {
    const mode = modeOf.get(identity.name) ?? identity.mode;
    return mode === "off" ? [] : [{ identity, mode }];
  });
  const looked = await db.transaction(
    async (trx) => {
      await gatherFacts(trx, { now, asOf, timeZone, run });
      const all: (BreachesFound & { examined: string[] })[] = [];
      for (const { identity } of checked) {
        const found = await findBreaches(trx, identity);
        all.push({ ...found, examined: await findExamined(trx, identity) });
      }
      return all;
    },
    { isolationLevel: "repeatable read" },
  );
  await markModes(db, modeOf);
  const results: IdentityResult[] = [];
  for (const [n, { identity, mode }] of checked.entries()) {
    const { breaches, total, examined } = looked[n] ?? { breaches: [], total: 0, examined: [] };
    const findings = breaches.map((breach) => findingOf(identity, mode, breach));
    const recorded = await recordFindings(db, { run, seenAt: now }, findings);
    const broken = new Set(findings.map(({ key }) => key));
    // Beyond the limit it is not known which of the older findings still are.
    const gone = total > breaches.length ? [] : examined.filter((key) => !broken.has(key));
    const { name, severity } = identity;
    results.push({
      name,
      severity,
      mode,
      breaches: total,
      opened: recorded.filter(({ change }) => change !== "refreshed").length,
      healed: await healFindings(db, { run, seenAt: now }, gone),
    });
  }
  return results;
}

/** Open findings say by which mode they are to be judged now, those of an identity that was turned off as well. */
async function markModes(db: Knex, modes: ReadonlyMap<string, IdentityMode>): Promise<void> {
  await db.raw(
    `update reconcile.findings f set evidence = f.evidence || jsonb_build_object('mode', m.mode)
     from unnest(?::text[], ?::text[]) as m(identity, mode)
     where f.class = 'identity' and f.identity = m.identity and f.state <> 'healed'
       and f.evidence->>'mode' is distinct from m.mode`,
    [sqlArray([...modes.keys()]), sqlArray([...modes.values()])],
  );
}

const findingOf = (identity: Identity, mode: IdentityMode, breach: Breach): Finding => ({
  key: `identity:${identity.name}:${breach.resource}:${breach.id}`,
  class: "identity",
  identity: identity.name,
  severity: identity.severity,
  resource: breach.resource,
  objectId: breach.id,
  objectAt: breach.at,
  differences: [{ field: identity.name, service: breach.expected, mirror: breach.found }],
  amountAtRiskMinor: breach.atRiskMinor,
  currency: breach.currency,
  cause: null,
  evidence: { mode, holds: identity.holds },
});
