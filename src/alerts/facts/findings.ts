import type { Knex } from "knex";
import type { BrokenIdentity, EndpointFinding } from "../rules/reconciliation.ts";

/** The identities that are enforced and do not hold; acknowledged breaches are not among them. One statement. */
export async function findBrokenIdentities(db: Knex): Promise<BrokenIdentity[]> {
  const { rows } = await db.raw<{
    rows: {
      identity: string;
      severity: BrokenIdentity["severity"];
      n: string;
      at_risk: { currency: string; amount: string }[] | null;
      examples: string[];
    }[];
  }>(
    `with open as (
       select coalesce(identity, 'without a name') as identity, severity, id, resource, object_id, currency,
              amount_at_risk_minor
       from reconcile.findings
       where class = 'identity' and state in ('open', 'reopened') and evidence->>'mode' = 'enforce'
     )
     select f.identity, f.severity, count(*) as n, (array_agg(concat_ws(' ', f.resource, f.object_id) order by f.id))[1:5] as examples,
       (select jsonb_agg(jsonb_build_object('currency', r.currency, 'amount', r.amount::text) order by r.currency)
        from (select o.currency, sum(o.amount_at_risk_minor) as amount from open o
              where o.identity = f.identity and o.currency is not null and o.amount_at_risk_minor is not null
              group by o.currency) r) as at_risk
     from open f group by f.identity, f.severity order by f.identity`,
  );
  return rows.map((row) => ({
    name: row.identity,
    severity: row.severity,
    breaches: Number(row.n),
    amountAtRisk: (row.at_risk ?? []).map(({ currency, amount }) => {
      return { currency, amountMinor: BigInt(amount) };
    }),
    examples: row.examples,
  }));
}

/** What is wrong with the endpoint now, by the last look at it. One statement. */
export async function findEndpointProblems(db: Knex): Promise<EndpointFinding[]> {
  return db("reconcile.findings")
    .where("class", "endpoint")
    .whereIn("state", ["open", "reopened"])
    .orderBy("key")
    .select<EndpointFinding[]>(
      "key",
      "severity",
      db.raw("evidence->>'says' as says"),
      db.raw("evidence->>'remedy' as remedy"),
    );
}
