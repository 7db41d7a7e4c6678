import { expect, test } from "vitest";
import { registerSettings } from "../../../src/main/cli/settings.ts";
import type { SettingInForce } from "../../../src/app/config/settings-in-force.ts";
import { runCommand } from "./command-line.ts";

const env = {
  DATABASE_URL: "postgres://tallyhook:hunter2@db.example.com:5432/tallyhook",
  EVENTS_KEEP_DAYS: "90",
  ALERT_CRM_SECRET: "hunter2-of-the-channel",
};
const settings = (...args: string[]) => runCommand(registerSettings, ["settings", ...args], { env });

test("settings are listed by topic, with what each is for, its value here, and no secret", async () => {
  const { out, error } = await settings();
  expect(error).toBeNull();
  expect(out).not.toContain("hunter2");
  expect(out).toMatch(/^Database and queue\n\n {2}DATABASE_URL: set, from the environment\n {6}Where/);
  expect(out).toContain("\n  CHANGES_KEEP_DAYS: 30, the default\n");
  expect(out).toContain("\n  SVC_BASE_URL: not set\n");
  expect(out.replaceAll(/\s+/g, " ")).toContain(
    "EVENTS_KEEP_DAYS: 90, from the environment Events are removed this many days after they arrived; the mirror and its " +
      'history stay (docs/operations.md, "Keeping the inbox small"). It should be a whole number of days from 90 to ' +
      "36500. Default: 400.",
  );
  expect(out).toContain("\nSecrets by names of your own\n\n  ALERT_CRM_SECRET: set, from the environment\n");
  expect(out.split("\n").filter((line) => line.length > 120)).toEqual([]);
});

test("settings as JSON have the same in fields", async () => {
  const { out } = await settings("--json");
  expect(out).not.toContain("hunter2");
  const listed = JSON.parse(out) as SettingInForce[];
  expect(listed.find(({ name }) => name === "EVENTS_KEEP_DAYS")).toMatchObject({
    value: "90",
    source: "environment",
    fallback: "400",
    isSecret: false,
  });
});
