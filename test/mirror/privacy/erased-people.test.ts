import { expect, test } from "vitest";
import { erasedContactsAmong, keepContacts } from "../../../src/core/mirror/privacy/erased-people.ts";
import { useTestDatabase } from "../../support/use-database.ts";

const database = useTestDatabase();

test("whether an address belongs to anybody else is asked of an index, among 100,000 customers", async () => {
  const { db } = database;
  await db.raw(
    `insert into mirror.customers (id, email, phone, source_updated_at, version, last_cause)
     select 'customer-' || n, 'Person' || n || '@Example.com', '+1 (555) ' || n, now(), 'v', 'import'
     from generate_series(1, 100000) n`,
  );
  await db.raw("analyze mirror.customers");
  await db("mirror.erasures").insert([{ customer_id: "customer-1" }, { customer_id: "customer-2" }]);
  const contacts = ["person1@example.com", "+15551", "person3@example.com", "+15552"];
  await keepContacts(db, "customer-1", contacts);
  let asked: { sql: string; bindings: unknown[] } | undefined;
  const remember = (query: { sql: string; bindings: unknown[] }): void => void (asked = query);
  db.on("query", remember);
  // The third is somebody else's by now; the fourth was of two people, both erased.
  expect(await erasedContactsAmong(db, contacts)).toEqual(new Set(["person1@example.com", "+15551", "+15552"]));
  db.removeListener("query", remember);
  if (asked === undefined) throw new Error("nothing was asked");
  const { sql, bindings } = asked;
  const { rows } = await db.raw<{ rows: Record<string, string>[] }>(
    `explain ${sql.replaceAll(/\$\d+/g, "?")}`,
    bindings as string[],
  );
  const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
  expect(plan).toContain("customers_email");
  expect(plan).toContain("customers_phone");
  expect(plan).not.toContain("Seq Scan on customers");
});
