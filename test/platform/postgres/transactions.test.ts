import { expect, test } from "vitest";
import { seededRandom } from "../../../src/platform/random.ts";
import { retryOnConflict } from "../../../src/platform/postgres/transactions.ts";

const deps = { random: seededRandom("retries") };
const failing = (code: string, times: number) => {
  let tries = 0;
  const transaction = async (): Promise<number> => {
    tries++;
    if (tries <= times) throw Object.assign(new Error(code), { code });
    return tries;
  };
  return { transaction, tries: () => tries };
};

test.each(["40P01", "40001"])("repeats a transaction that failed with %s", async (code) => {
  expect(await retryOnConflict(deps, failing(code, 2).transaction)).toBe(3);
});

test("repeats a lock time-out only for a caller that waits for locks", async () => {
  const wait = { waitsForLocks: true };
  expect(await retryOnConflict(deps, failing("55P03", 6).transaction, wait)).toBe(7);
  const once = failing("55P03", 1);
  await expect(retryOnConflict(deps, once.transaction)).rejects.toMatchObject({ code: "55P03" });
  expect(once.tries()).toBe(1);
});

test("gives up after five tries", async () => {
  const always = failing("40P01", 99);
  await expect(retryOnConflict(deps, always.transaction)).rejects.toMatchObject({ code: "40P01" });
  expect(always.tries()).toBe(5);
});

test.each(["23505", "57P01"])("does not repeat what failed with %s", async (code) => {
  const once = failing(code, 1);
  await expect(retryOnConflict(deps, once.transaction)).rejects.toMatchObject({ code });
  expect(once.tries()).toBe(1);
});
