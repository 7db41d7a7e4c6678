import type { Snapshot, Resource } from "../../src/core/mirror/snapshot.ts";
import { canonicalTimestamp } from "../../src/core/contract/timestamp.ts";
import type { Json, TestSandbox } from "../sandbox/harness.ts";

const families: Readonly<Record<string, Resource>> = {
  order: "order",
  customer: "customer",
  subscription: "subscription",
};

/** What the events of all that happened tell. */
export async function told(sandbox: TestSandbox): Promise<Snapshot[]> {
  const events: Json[] = (await sandbox.control("GET", "/events?limit=50000")).data;
  return events.flatMap(({ type, created_at, data }): Snapshot[] => {
    const resource = families[String(type).split(".")[0] ?? ""];
    return resource === undefined
      ? []
      : [
          {
            resource,
            object: data.object,
            fallbackUpdatedAt: canonicalTimestamp(created_at),
            observedAt: null,
            cause: "event:1",
          },
        ];
  });
}

const lists: [Resource, string][] = [
  ["customer", "/v1/customers?deleted=true"],
  ["order", "/v1/orders?expand=transactions"],
  ["transaction", "/v1/transactions?"],
  ["subscription", "/v1/subscriptions?"],
];

/** What the lists show in the end. */
export async function listed(sandbox: TestSandbox, cause = "import"): Promise<Snapshot[]> {
  const all: Snapshot[] = [];
  for (const [resource, path] of lists) {
    for (let after = ""; ;) {
      const page = await sandbox.call("GET", `${path}&limit=100${after}`);
      const observedAt = canonicalTimestamp(new Date(page.headers.get("date") ?? "").toISOString());
      for (const object of page.body.data as Json[]) {
        all.push({ resource, object, fallbackUpdatedAt: null, observedAt, cause });
      }
      if (page.body.has_more !== true) break;
      after = `&starting_after=${page.body.cursors.next}`;
    }
  }
  return all;
}
