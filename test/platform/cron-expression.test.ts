import { expect, test } from "vitest";
import { isCronExpression } from "../../src/platform/cron.ts";

test.each([
  "* * * * *",
  "30 3 * * *",
  "*/15 0-6,22 1,15 jan-jun Mon-FRI",
  "0 0 31 12 7",
  "5-59/10 * * * sun",
  "  0  4\t* * * ",
])("%j is one", (text) => expect(isCronExpression(text)).toBe(true));

test.each([
  "",
  "daily",
  "* * * *",
  "* * * * * *",
  "60 * * * *",
  "* 24 * * *",
  "* * 0 * *",
  "* * * 13 *",
  "* * * * 8",
  "*/0 * * * *",
  "5-1 * * * *",
  "1-2-3 * * * *",
  "1,,2 * * * *",
  "-5 * * * *",
  "1.5 * * * *",
  "* * * foo *",
  "* * * * constructor",
  "@daily",
  "H 3 * * *",
  "0 3 30 2 *",
  "*/90 * * * *",
])("%j is none", (text) => expect(isCronExpression(text)).toBe(false));
