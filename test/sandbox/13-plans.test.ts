import { expect, test } from "vitest";
import { type Json, expectRefusal } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();

test("every cadence is there, with and without a setup fee, in two currencies", async () => {
  const { data } = await sandbox.ok("GET", "/v1/plans?limit=100");
  const kinds = new Set(
    data.map((plan: Json) => {
      const { interval, interval_count } = plan.billing_cycle;
      return `${interval}/${interval_count} ${plan.one_time_amount > 0} ${plan.currency}`;
    }),
  );
  expect(kinds.size).toBe(6 * 2 * 2);
  expect(data.every((plan: Json) => plan.billing_cycles === 0)).toBe(true);
});

test("search, filter, sort, retrieve", async () => {
  const find = async (query: string): Promise<Json[]> => (await sandbox.ok("GET", `/v1/plans?limit=100&${query}`)).data;
  expect(await find("search=WEEKLY")).toHaveLength(8);
  expect(await find("search=box-annual-usd")).toHaveLength(1);
  expect(await find("active=false")).toEqual([]);
  expect(await find("active=true")).toHaveLength(24);
  for (const field of ["created_at", "updated_at", "name", "amount"]) {
    const up = (await find(`sort=${field}[asc]`)).map((plan) => plan.id);
    const down = (await find(`sort=-${field}`)).map((plan) => plan.id);
    expect(down).toEqual(up.toReversed());
  }
  const amounts = (await find("sort=amount[asc]")).map((plan) => plan.amount);
  expect(amounts).toEqual(amounts.toSorted((a, b) => a - b));
  expectRefusal(await sandbox.call("GET", "/v1/plans?sort=plan_code"), 400, "invalid_value");
  expectRefusal(await sandbox.call("GET", "/v1/plans/box-annual-usd"), 404, "resource_not_found");
});

test("plans cannot be made, changed or removed", async () => {
  const before = await sandbox.ok("GET", "/v1/plans?limit=100");
  const path = `/v1/plans/${before.data[0].id}`;
  for (const [method, called] of [
    ["POST", "/v1/plans"],
    ["PATCH", path],
    ["DELETE", path],
  ] as const) {
    const refused = await sandbox.call(method, called, { name: "Mine" });
    expect([404, 405]).toContain(refused.status);
  }
  expect(await sandbox.ok("GET", "/v1/plans?limit=100")).toEqual(before);
});

test("0 billing cycles is without end; a setup fee may be 0", async () => {
  const { data } = await sandbox.ok("GET", "/v1/plans?limit=100");
  expect(data.some((plan: Json) => plan.one_time_amount === 0)).toBe(true);
  expect(data.some((plan: Json) => plan.one_time_amount > 0)).toBe(true);
  expect(data.every((plan: Json) => plan.billing_cycles === 0)).toBe(true);
});
