import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { type Json, expectRefusal } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();
/** Paths of the lists, as they are after the coupon is there. */
const paths: Record<string, string> = {
  customers: "customers",
  products: "products",
  plans: "plans",
  orders: "orders",
  subscriptions: "subscriptions",
  transactions: "transactions",
  coupons: "coupons",
  "team members": "team_members",
  "webhook endpoints": "webhook_endpoints",
  "coupon codes": "",
};
const names = Object.keys(paths);

beforeAll(async () => {
  // A stopped clock, so that most things share their instant with others.
  await sandbox.control("POST", "/clock", { now: "2026-03-01T00:00:00Z" });
  await sandbox.control("POST", "/traffic", { orders: 50, subscriptions: 15, days: 2, seed: 1 });
  const [role] = (await sandbox.ok("GET", "/v1/roles")).data;
  for (let i = 0; i < 26; i++) {
    if (i === 13) await sandbox.control("POST", "/clock", { advance_seconds: 1 });
    const url = `https://example.test/${i}`;
    await sandbox.ok("POST", "/v1/webhook_endpoints", {
      url,
      enabled_events: ["customer.created"],
    });
    await sandbox.ok("POST", "/v1/coupons", {
      name: `Coupon ${i}`,
      percentage: 5,
      duration: "once",
    });
    await sandbox.ok("POST", "/v1/products", {
      name: `${i}`,
      pricing: { amount: i, currency: "usd" },
    });
    await sandbox.ok("POST", "/v1/team_members", {
      first_name: "Ada",
      last_name: "Lovelace",
      email: `member${i}@example.test`,
      phone_number: "+15550001111",
      role_id: role.id,
    });
  }
  const [coupon] = (await sandbox.ok("GET", "/v1/coupons?limit=1")).data;
  await sandbox.ok("POST", `/v1/coupons/${coupon.id}/codes`, { count: 40 });
  paths["coupon codes"] = `coupons/${coupon.id}/codes`;
  await sandbox.control("GET", "/idle");
});

const page = (name: string, query: string) => sandbox.ok("GET", `/v1/${paths[name]}?${query}`);
const ids = ({ data }: Json): string[] => data.map((item: Json) => item.id ?? item.code);

async function walk(name: string, limit: () => number): Promise<string[]> {
  const seen: string[] = [];
  for (;;) {
    const cursor = seen.length === 0 ? "" : `&starting_after=${seen.at(-1)}`;
    const size = limit();
    const answer = await page(name, `limit=${size}${cursor}`);
    seen.push(...ids(answer));
    expect(answer.data.length).toBeLessThanOrEqual(size);
    if (!answer.has_more) return seen;
    expect(answer.data).toHaveLength(size);
    expect(answer.cursors.next).toBe(seen.at(-1));
  }
}

test.each(names)("%s: shape, ten items, newest first, has_more", async (name) => {
  const first = await page(name, "");
  expect(first).toMatchObject({ url: `/v1/${paths[name]}`, has_more: true });
  expect(first.data).toHaveLength(10);
  const times = first.data.map((item: Json) => item.created_at);
  expect(times).toEqual(times.toSorted().toReversed());
  const all = await page(name, "limit=100");
  expect(all).toMatchObject({ has_more: false, cursors: { next: null } });
});

test.each(names)("%s: every item once at every page size from 1 to 25", async (name) => {
  const all = ids(await page(name, "limit=100"));
  expect(new Set(all).size).toBe(all.length);
  for (let limit = 1; limit <= 25; limit++) expect(await walk(name, () => limit)).toEqual(all);
});

test.each(names)("%s: backward pages give what stands just before, in list order", async (name) => {
  const all = ids(await page(name, "limit=100"));
  for (const limit of [1, 4, 25]) {
    const seen = [all.at(-1) ?? ""];
    for (;;) {
      const answer = await page(name, `limit=${limit}&ending_before=${seen[0]}`);
      seen.unshift(...ids(answer));
      if (!answer.has_more) break;
    }
    expect(seen).toEqual(all);
  }
});

test("pages of changing sizes join to the whole list", async () => {
  const all = ids(await page("transactions", "limit=100"));
  const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(sizes, async (wished) => {
      let turn = 0;
      const next = () => wished[turn++ % wished.length] ?? 1;
      expect(await walk("transactions", next)).toEqual(all);
    }),
    { numRuns: 10 },
  );
});

test.each(names)("%s: bad limits and cursors are refused by name", async (name) => {
  const get = (query: string) => sandbox.call("GET", `/v1/${paths[name]}?${query}`);
  for (const limit of ["0", "-1", "x", "1.5"]) {
    const called = await get(`limit=${limit}`);
    expectRefusal(called, 400, "invalid_value", "limit");
    expect(called.body.error.message).toBe("limit: must be a whole number from 1");
  }
  for (const cursor of ["starting_after", "ending_before"]) {
    expectRefusal(await get(`${cursor}=nonsense`), 400, "invalid_value", cursor);
  }
  const [id] = ids(await page(name, "limit=1"));
  const both = await get(`starting_after=${id}&ending_before=${id}`);
  expectRefusal(both, 400, "invalid_value");
});

test("roles are not paged", async () => {
  const roles = await sandbox.ok("GET", "/v1/roles?limit=1");
  expect(roles.data.length).toBeGreaterThan(1);
  const sorted = roles.data.map((role: Json) => role.name as string);
  expect(sorted).toEqual(sorted.toSorted());
});
