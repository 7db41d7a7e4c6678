import type { Knex } from "knex";
import { wantFetches } from "../../inbox/fetches.ts";
import { applyObservations } from "../../mirror/apply.ts";
import type { Observation, Resource } from "../../mirror/observation.ts";
import type { ServiceClient } from "../../service/client.ts";
import { observed } from "../../worker/read-object.ts";

const walks: readonly { path: string; resource: Resource; query: Record<string, string> }[] = [
  { path: "/customers", resource: "customer", query: { deleted: "true" } },
  { path: "/orders", resource: "order", query: { expand: "transactions" } },
  { path: "/transactions", resource: "transaction", query: {} },
  { path: "/subscriptions", resource: "subscription", query: {} },
];

/**
 * Heals the mirror by walking the service's lists through the one writer. Everything is read: this proves the
 * main job on a small data set, it is not the nightly run. Customers that no list shows are ordered to be read
 * by id, since only that tells a deletion from a gap.
 */
export async function healFromLists(
  { db, client }: { db: Knex; client: Pick<ServiceClient, "listPages"> },
  onPage: (rows: number) => void,
): Promise<void> {
  for (const { path, resource, query } of walks) {
    const seen: string[] = [];
    for await (const page of client.listPages(path, { ...query, limit: "100" })) {
      const observations = page.items.map((object): Observation =>
        observed(resource, object, page.date, "import"),
      );
      await db.transaction((trx) => applyObservations(trx, observations));
      seen.push(...page.items.map(({ id }) => id));
      onPage(page.items.length);
    }
    if (resource === "customer") await wantUnseenCustomers(db, seen);
  }
}

async function wantUnseenCustomers(db: Knex, seen: readonly string[]): Promise<void> {
  const unseen = await db("mirror.customers").whereNotIn("id", seen).pluck<string[]>("id");
  const fetches = unseen.map((id) => ({
    resource: "customer",
    id,
    reason: "thin" as const,
    notBefore: null,
  }));
  await wantFetches(db, fetches);
}
