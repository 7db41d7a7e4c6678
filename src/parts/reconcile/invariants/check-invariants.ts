import type { Knex } from "knex";
import { ConfigurationError } from "../../../platform/errors.ts";
import { nearestName } from "../../../platform/nearest-name.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { sqlArray } from "../../../platform/postgres/values.ts";
import { type Finding, type FoundIn, healFindings, recordFindings } from "../findings/findings.ts";
import { chargebacks } from "./chargebacks.ts";
import {
  type Breach,
  type Invariant,
  type InvariantMode,
  type InvariantMoment,
  type InvariantSeverity,
  gatherFacts,
} from "./invariant.ts";
import { orderAmounts, orderCharges, refunds } from "./orders.ts";
import { recordInvariants } from "./records.ts";
import { subscriptionCharges, subscriptionStates } from "./subscriptions.ts";
import { controlSums } from "./sums.ts";

export interface InvariantResult {
  name: string;
  severity: InvariantSeverity;
  mode: Exclude<InvariantMode, "off">;
  /** Subjects that break it. */
  breaches: number;
  /** Findings that are new or reopened. */
  opened: number;
  healed: number;
}

export interface InvariantOptions {
  /** The modes set by RECONCILE_IDENTITIES. */
  modes: Readonly<Record<string, InvariantMode>>;
  /** Null outside a run. */
  run: number | null;
  timeZone: string;
}

/**
 * Checks every invariant that is not off, all at one moment of the mirror, and records the breaches as findings. New
 * breaches open, resolved ones heal, and findings on objects that changed since `asOf` stay as they are. Opens its own
 * transactions and only reads the mirror. Idempotent.
 */
export async function checkInvariants(
  db: Knex,
  { now, asOf }: Pick<InvariantMoment, "now" | "asOf">,
  { modes, run, timeZone }: InvariantOptions,
): Promise<InvariantResult[]> {
  const modeOf = invariantModesOf(modes);
  const checked = allInvariants.flatMap((identity) => {
    const mode = modeOf.get(identity.name) ?? "enforce";
    return mode === "off" ? [] : [{ identity, mode }];
  });
  const results = await db.transaction(
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
  await inTransaction(db, (trx) => markModes(trx, modeOf));
  const summary: InvariantResult[] = [];
  for (const [n, { identity, mode }] of checked.entries()) {
    const { breaches, total, examined } = results[n] ?? { breaches: [], total: 0, examined: [] };
    const findings = breaches.map((breach) => findingOf(identity, mode, breach));
    const broken = new Set(findings.map(({ key }) => key));
    // Beyond the limit it is unknown which of the older findings still hold.
    const gone = total > breaches.length ? [] : examined.filter((key) => !broken.has(key));
    const { opened, healed } = await record(db, { run, seenAt: now }, { findings, gone });
    const { name, severity } = identity;
    summary.push({
      name,
      severity,
      mode,
      breaches: total,
      opened,
      healed,
    });
  }
  return summary;
}

async function record(
  db: Knex,
  sighting: FoundIn,
  { findings, gone }: { findings: readonly Finding[]; gone: readonly string[] },
): Promise<Pick<InvariantResult, "opened" | "healed">> {
  if (findings.length === 0 && gone.length === 0) return { opened: 0, healed: 0 };
  return inTransaction(db, async (trx) => {
    const recorded = await recordFindings(trx, sighting, findings);
    const opened = recorded.filter(({ change }) => change !== "refreshed").length;
    return { opened, healed: await healFindings(trx, sighting, gone) };
  });
}

/** Sets the current mode on open findings, also on those of an invariant that was turned off. */
async function markModes(db: Knex, modes: ReadonlyMap<string, InvariantMode>): Promise<void> {
  await db.raw(
    `update reconcile.findings f set evidence = f.evidence || jsonb_build_object('mode', m.mode)
     from unnest(?::text[], ?::text[]) as m(identity, mode)
     where f.class = 'identity' and f.identity = m.identity and f.state <> 'healed'
       and f.evidence->>'mode' is distinct from m.mode`,
    [sqlArray([...modes.keys()]), sqlArray([...modes.values()])],
  );
}

const findingOf = (identity: Invariant, mode: InvariantMode, breach: Breach): Finding => ({
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
  evidence: { mode, holds: identity.rule },
});

/**
 * The mode of every invariant: its default, or what RECONCILE_IDENTITIES sets. Throws `ConfigurationError` with the
 * names that are no invariants.
 */
function invariantModesOf(settings: Readonly<Record<string, InvariantMode>>): ReadonlyMap<string, InvariantMode> {
  const modes = new Map(allInvariants.map(({ name, mode = "enforce" }) => [name, mode]));
  for (const [name, mode] of Object.entries(settings)) {
    if (!modes.has(name)) {
      const nearest = nearestName(name, modes.keys());
      const known = allInvariants.map((identity) => identity.name).join(", ");
      const hint = nearest === null ? ` There are ${known}.` : ` Did you mean ${nearest}?`;
      throw new ConfigurationError(`RECONCILE_IDENTITIES: there is no invariant ${name}.${hint}`);
    }
    modes.set(name, mode);
  }
  return modes;
}

/** Every invariant, in the order in which people read them. */
export const allInvariants: readonly Invariant[] = [
  ...orderAmounts,
  ...orderCharges,
  ...refunds,
  ...chargebacks,
  ...subscriptionCharges,
  ...subscriptionStates,
  ...recordInvariants,
  ...controlSums,
];

/** If a fault is everywhere, a thousand breaches are enough evidence. */
const mostBreaches = 1_000;

export interface BreachesFound {
  /** The breaches with the most money at risk, at most `mostBreaches`. */
  breaches: Breach[];
  /** The number of all breaches. */
  total: number;
}

interface BreachRow {
  resource: Breach["resource"];
  id: string;
  currency: string | null;
  at_risk: string | null;
  at: string | null;
  expected: string;
  found: string;
  total: string;
}

/** The subjects that break an invariant. Needs the transaction in which the facts were gathered. */
async function findBreaches(trx: Knex.Transaction, { subject, breaches }: Invariant): Promise<BreachesFound> {
  const { rows } = await trx.raw<{ rows: BreachRow[] }>(
    `select coalesce(to_jsonb(breach)->>'resource', cast(:subject as text)) as resource, id, currency, at_risk,
            expected, found, count(*) over () as total,
            coalesce(to_jsonb(breach)->>'at', case cast(:subject as text) when 'day' then cast(
              cast(left(id, 10) as timestamp) at time zone (select time_zone from moment) as text) end) as at
     from (${breaches}) breach order by at_risk desc nulls last, id limit :most`,
    { subject, most: mostBreaches },
  );
  return {
    breaches: rows.map((row) => ({
      resource: row.resource,
      id: row.id,
      currency: row.currency,
      at: row.at,
      atRiskMinor: row.at_risk === null ? null : BigInt(row.at_risk),
      expected: row.expected,
      found: row.found,
    })),
    total: Number(rows[0]?.total ?? 0),
  };
}

/**
 * The keys of unhealed findings whose objects were examined this time: those not found again are healed. Needs the same
 * transaction.
 */
async function findExamined(trx: Knex.Transaction, { name, examined }: Invariant): Promise<string[]> {
  const wasExamined =
    examined === undefined
      ? `not exists (select from in_flight i where i.resource = f.resource and i.id = f.object_id)`
      : `f.object_id in (${examined})`;
  const { rows } = await trx.raw<{ rows: { key: string }[] }>(
    `select f.key from reconcile.findings f
     where f.class = 'identity' and f.identity = :name and f.state <> 'healed' and ${wasExamined}`,
    { name },
  );
  return rows.map(({ key }) => key);
}
