import { afterAll, beforeAll, expect, test } from "vitest";
import { copySample } from "../../../../src/main/cli/upgrade/copy-sample.ts";
import { type TestDatabase, createTestDatabase } from "../../../support/database.ts";

let source: TestDatabase;
let target: TestDatabase;

beforeAll(async () => {
  [source, target] = await Promise.all([createTestDatabase(), createTestDatabase()]);
  await source.db.raw(`
    insert into mirror.orders (id, customer_id, created_at, last_cause)
    select 'o' || i, 'c' || i / 3, '2026-01-01'::timestamptz + i * interval '1 minute', 'test' from generate_series(1, 4000) i;
    insert into mirror.transactions (id, order_id, created_at, last_cause)
    select 't' || k || id, id, created_at, 'test' from mirror.orders, generate_series(1, 2) k;
    insert into mirror.customers (id, email, last_cause)
    select 'c' || i, 'e''"\\{,}' || i, 'test' from generate_series(0, 1400) i;
    insert into mirror.versions (resource, id, source_updated_at, content_hash, cause, data)
    select 'order', id, created_at, 'h', 'test', '{"a": [1, "\u00fc"]}' from mirror.orders;
    insert into inbox.receipts (event_id, raw_sha256, raw, secret_id)
    select 'e' || id, sha256(id::bytea), convert_to(id, 'UTF8'), 's' from mirror.orders;
    insert into inbox.progress (seq, resource_type, resource_id)
    select seq, 'order', substr(event_id, 2) from inbox.receipts;
    insert into alerts.alerts (key, rule, severity, stage, order_id, opened_at, updated_at, found_by)
    select 'decline:' || id, 'declines', 'info', 'failed', id, now(), now(), 'event' from mirror.orders;
    insert into alerts.history (alert_id, change, stage, at, found_by)
    select id, 'opened', 'failed', now(), 'event' from alerts.alerts;
    delete from reports.currencies where code = 'zwl';
    analyze`);
});
afterAll(async () => {
  await Promise.all([source.destroy(), target.destroy()]);
});

async function oneOf<T>({ db }: TestDatabase, sql: string): Promise<T | undefined> {
  const { rows } = await db.raw<{ rows: { value: T }[] }>(`select (${sql}) as value`);
  return rows[0]?.value;
}

test("a bounded copy has objects with all that is theirs, and no row without its owner", async () => {
  const { sizes, problems } = await source.db.transaction(
    (trx) => copySample(trx, target.db, { rows: 1_000, signal: new AbortController().signal }),
    { isolationLevel: "repeatable read", readOnly: true },
  );
  expect(problems).toEqual([]);
  const orders = sizes.get("mirror.orders") ?? { real: 0, copied: 0 };
  expect(orders.real).toBe(4_000);
  // The latest 125, and about as many from anywhere.
  expect(orders.copied).toBeGreaterThan(125);
  expect(orders.copied).toBeLessThanOrEqual(250);
  for (const table of [
    "inbox.receipts",
    "inbox.progress",
    "alerts.alerts",
    "alerts.history",
    "mirror.versions",
  ]) {
    expect(sizes.get(table), table).toEqual({ real: 4_000, copied: orders.copied });
  }
  expect(sizes.get("mirror.transactions")?.copied).toBe(2 * orders.copied);
  const lacking = `select count(*)::int from mirror.orders o where not exists (
    select from mirror.customers c where c.id = o.customer_id)`;
  expect(await oneOf(target, lacking)).toBe(0);
  expect(await oneOf(target, "select max(created_at)::text from mirror.orders")).toBe(
    await oneOf(source, "select max(created_at)::text from mirror.orders"),
  );
  // A small table comes whole, as it is there, and not as its migration filled it.
  expect(
    await oneOf(target, "select count(*)::int from reports.currencies where code = 'zwl'"),
  ).toBe(0);
  const newest =
    "select md5(string_agg(t::text, '|' order by t.id)) from mirror.customers t where id in ('c1', 'c1333')";
  expect(await oneOf(source, newest)).not.toBeNull();
  const states = `select md5(string_agg(v.data::text || c.email, '|' order by v.id)) from mirror.versions v
    join mirror.orders o on o.id = v.id join mirror.customers c on c.id = o.customer_id
    where o.created_at > '2026-01-03 17:00'`;
  expect(await oneOf(target, states)).toBe(await oneOf(source, states));
});
