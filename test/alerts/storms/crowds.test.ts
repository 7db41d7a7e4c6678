import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Knex } from "knex";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { assess } from "../../../src/parts/alerts/assess.ts";
import { raise } from "../../../src/parts/alerts/raise-conditions.ts";
import { reportCardNumbers } from "../../../src/parts/alerts/rules/card-numbers.ts";
import { reportUnknownValues } from "../../../src/parts/alerts/rules/unknown-values.ts";
import { deadEventCondition, duplicateIdCondition } from "../../../src/parts/alerts/rules/events.ts";
import { endsByAcknowledging } from "../../../src/parts/alerts/rules/wording.ts";
import { sampleMessages } from "../../../src/parts/alerts/sample-messages.ts";
import type { RuleName } from "../../../src/parts/alerts/settings.ts";
import { limitOf } from "../../../src/parts/alerts/storms/hold-back.ts";
import { stormFamilies } from "../../../src/parts/alerts/storms/storms.ts";
import type { Family } from "../../../src/parts/alerts/condition.ts";
import { reportUndescribed } from "../../../src/parts/alerts/undescribed.ts";
import { applySnapshots } from "../../../src/core/mirror/write/apply.ts";
import { at, sampleOrder, shown } from "../../mirror/samples.ts";
import { projectRoot } from "../../support/project-root.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { emptyAll } from "../../worker/worker-stand.ts";
import { standing } from "../sweep-stand.ts";

const database = useTestDatabase();
let db: Knex;
beforeAll(() => {
  ({ db } = database);
});
beforeEach(() => emptyAll(db));

const { alertContext, clock } = standing("2025-03-01T13:00:00.000Z");
const { rules } = alertContext.settings;
const now = clock.now();

type Play = (trx: Knex.Transaction, numbers: readonly number[]) => Promise<unknown>;

const orders =
  (fields: (n: number) => object): Play =>
  async (trx, numbers) => {
    const observations = numbers.map((n) =>
      shown("order", sampleOrder({ id: `order-${n}`, status: "failed", ...fields(n) })),
    );
    const { written } = await applySnapshots(trx, observations);
    await assess(trx, alertContext, written, "event");
  };

const renewal = (fields: object) =>
  orders((n) => ({
    failure_code: "expired_card",
    subscription_id: `subscription-${n}`,
    subscription_cycle: 2,
    attempt_count: 1,
    next_retry_at: at(86_400),
    ...fields,
  }));

/** What hits these numbers of objects, for each rule whose alerts are of one object each. */
const plays: Partial<Record<RuleName, Play>> = {
  decline: orders(() => ({ failure_code: "stolen_card", subscription_id: null })),
  dunning_first: renewal({ subscription_cycle: 1, next_retry_at: null }),
  dunning_renewal: renewal({}),
  dunning_final: renewal({ attempt_count: 4, next_retry_at: null }),
  chargeback: orders(() => ({ status: "chargeback" })),
  event_dead: (trx, numbers) => {
    const dead = (n: number) => ({ eventId: `evt-${n}`, seq: n, type: null, reason: "money" });
    const conditions = numbers.map((n) => deadEventCondition(rules, dead(n), now));
    return raise(trx, alertContext, conditions, "event");
  },
  event_duplicate_id: (trx, numbers) => {
    const twice = (n: number) => ({ eventId: `evt-${n}`, bodies: 2 });
    const conditions = numbers.map((n) => duplicateIdCondition(rules, twice(n), now));
    return raise(trx, alertContext, conditions, "sweep");
  },
  event_unknown: (trx, numbers) => {
    const values = new Set(numbers.map((n) => `status_${n}`));
    return reportUnknownValues(trx, alertContext, new Map([["order.status", values]]), "event");
  },
  card_number: (trx, numbers) => {
    const masked = numbers.map((n) => ({
      resource: "order",
      id: `order-${n}`,
      paths: [`metadata.k${n}`],
    }));
    return reportCardNumbers(trx, alertContext, masked, "event");
  },
  alert_undescribed: (trx, numbers) => {
    const undescribed = numbers.map((n) => ({
      resource: "order",
      id: `order-${n}`,
      orderNumber: null,
      money: null,
      command: "node src/bin/tallyhook.js explain",
      reason: "an error",
      failed: null,
    }));
    return reportUndescribed(trx, alertContext, undescribed, "event");
  },
};

const familyOf = (rule: RuleName): Family => {
  const families = Object.entries(stormFamilies) as [Family, { holds: readonly RuleName[] }][];
  const found = families.find(([, { holds }]) => holds.includes(rule));
  if (found === undefined) throw new TypeError(`no storm holds ${rule} back`);
  return found[0];
};

const held = [...new Set(Object.values(stormFamilies).flatMap(({ holds }) => holds))];

test("each rule that a storm holds back is played here", () => {
  expect(Object.keys(plays).toSorted()).toEqual(held.toSorted());
});

/** What cannot wait in a storm is sent by itself, up to this number (docs/operations.md). */
const atMostUrgent = 20;

test.each(Object.entries(plays) as [RuleName, Play][])(
  "300 objects that %s tells of, at once or in parts, are an alert each and few messages",
  async (rule, play) => {
    const limit = await limitOf(db, alertContext, familyOf(rule));
    const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => from + n);
    // Eight at a time up to the limits, and the rest at once.
    for (const [from, to] of [
      [0, 8],
      [8, 16],
      [16, 24],
      [24, 300],
    ] as const) {
      await db.transaction((trx) => play(trx, numbers(from, to)));
    }
    const alerts = await db("alerts.alerts").where({ rule }).whereRaw("key not like 'storm:%'");
    expect(alerts).toHaveLength(300);
    const messages = await db("alerts.outbox").where("channel", "log").whereNot("state", "dropped");
    expect(messages.length).toBeLessThanOrEqual(limit + 1 + atMostUrgent);
  },
);

const page = readFileSync(join(projectRoot, "docs/operations.md"), "utf8");
const [, table = ""] = page.split("\n| One alert is of ");
const rows = table
  .slice(0, table.indexOf("\n\n"))
  .split("\n")
  .slice(2)
  .map((line) => {
    const [, of = "", named = "", oneByOne = "", ends = ""] = line.split("|");
    const names = [...named.matchAll(/`([a-z_]+)`/g)].map(([, name]) => name as RuleName);
    return { of: of.trim(), names, oneByOne: oneByOne.trim(), ends: ends.trim() };
  });

test("the page's table has every rule once", () => {
  expect(rows.flatMap(({ names }) => names).toSorted()).toEqual(
    Object.keys(rules)
      .filter((rule) => !rule.startsWith("own_"))
      .toSorted(),
  );
});

test("the page's table has the limits of the storms, and none for what no storm holds back", () => {
  for (const { names, oneByOne } of rows) {
    for (const name of names) {
      const limit = held.includes(name) ? (stormFamilies[familyOf(name)].limit ?? "usual") : null;
      if (limit === null) expect(oneByOne, name).not.toMatch(/^\d|^usual/);
      else expect(oneByOne.split(" ")[0], name).toBe(String(limit));
    }
  }
});

test("the page's table says which alerts end by acknowledging alone: those whose advice says so", () => {
  const samples = sampleMessages(alertContext, {
    channel: "log",
    run: "run",
    at: now,
    all: true,
    endsAll: false,
  });
  const acknowledged = samples.flatMap(({ message }) =>
    message.advice.includes(endsByAcknowledging) ? [message.rule] : [],
  );
  const said = rows.flatMap(({ names, ends }) => (ends === "acknowledged" ? names : []));
  expect(said.toSorted()).toEqual([...new Set(acknowledged)].toSorted());
});
