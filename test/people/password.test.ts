import { expect, test } from "vitest";
import { hashPassword, isPassword } from "../../src/app/people/password.ts";

test("a password is kept at the cost of OWASP's cheat sheet, and one of another cost is still checked", async () => {
  const kept = await hashPassword("four words do not belong");
  expect(kept).toMatch(/^scrypt\$17\$8\$1\$/);
  const cheaper = await hashPassword("four words do not belong", 10);
  expect(await isPassword("four words do not belong", cheaper)).toBe(true);
  expect(await isPassword("five words do not belong", cheaper)).toBe(false);
});
