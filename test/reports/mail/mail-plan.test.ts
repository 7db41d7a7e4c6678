import { expect, test } from "vitest";
import { composeMail } from "../../../src/parts/reports/mail/compose-mail.ts";
import { mailPlanOf, periodsBefore, reportsOf } from "../../../src/parts/reports/mail/mailings.ts";
import { about } from "../sample-about.ts";

const plan = mailPlanOf([
  { name: "daily-control", word: null },
  { name: "exceptions", word: "day" },
  { name: "month-end", word: "month" },
]);

test.each([
  ["2026-11-01T06:00:00Z", "Europe/Berlin", "2026-10-31", "2026-10"],
  ["2026-10-31T23:30:00Z", "Europe/Berlin", "2026-10-31", "2026-10"],
  ["2026-10-31T23:30:00Z", "UTC", "2026-10-30", "2026-09"],
  ["2026-10-31T12:00:00Z", "Pacific/Auckland", "2026-10-31", "2026-10"],
  ["2026-01-01T12:00:00Z", "America/Los_Angeles", "2025-12-31", "2025-12"],
  ["2028-03-01T12:00:00Z", "UTC", "2028-02-29", "2028-02"],
  // The day before has 23 hours.
  ["2026-03-09T07:30:00Z", "America/Los_Angeles", "2026-03-08", "2026-02"],
])("at %s in %s the day before is %s, the month before %s", (now, timeZone, day, month) => {
  const [daily, monthly] = periodsBefore(new Date(now), timeZone, plan);
  expect(daily).toEqual({ key: `day:${day}`, from: day, to: day });
  expect(monthly?.key).toBe(`month:${month}`);
  expect(monthly?.from).toBe(`${month}-01`);
  expect(new Date(Date.parse(`${monthly?.to}T00:00:00Z`) + 86_400_000).getUTCDate()).toBe(1);
});

test("a kind of period about which nothing is mailed is left out", () => {
  const daily = mailPlanOf([{ name: "refunds", word: null }]);
  const keys = periodsBefore(new Date("2026-11-01T06:00:00Z"), "UTC", daily).map(({ key }) => key);
  expect(keys).toEqual(["day:2026-10-31"]);
  expect(reportsOf(plan, "month:2026-10").map(({ name }) => name)).toEqual(["month-end"]);
});

test("the subject says the worst result, and what was too large to be mailed is said", () => {
  const attached = { about, attachments: [], leftOut: [] };
  const failed = { ...about, report: "<b>", proof: { ...about.proof, verdict: "FAIL" as const } };
  const mail = composeMail([attached, { about: failed, attachments: [], leftOut: ["csv"] }], {
    to: ["a@example.com"],
    messageId: "1@example.com",
  });
  expect(mail.subject).toBe("FAIL: finance reports of 2026-10-01 to 2026-11-30");
  expect(mail.text).toContain("Too large to be mailed as csv");
  expect(mail.text).toContain(
    "tallyhook report refunds --from 2026-10-01 --to 2026-11-30 --as-of 2026-12-01T00:00:00.000Z",
  );
  expect(mail.html).not.toContain("<b><b>");
  expect(mail.html).toContain("&lt;b&gt;");
});
