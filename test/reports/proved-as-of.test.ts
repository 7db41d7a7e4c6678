import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type Finding,
  acknowledgeFinding,
  healFindings,
  recordFindings,
} from "../../src/parts/reconcile/findings/findings.ts";
import { defaultReconcileSettings } from "../../src/parts/reconcile/settings.ts";
import { reconcile } from "../../src/parts/reconcile/reconcile.ts";
import { type HostileService, type Quirks, refusal, startHostileService } from "../reconcile/hostile-service.ts";
import { type ReconcileStand, createReconcileStand } from "../reconcile/reconcile-stand.ts";
import { refusalText } from "../../src/parts/reports/cli/close-words.ts";
import { whyNotProved } from "../../src/parts/reports/close/refusal.ts";
import { type Proof, readProof } from "../../src/parts/reports/base/report-facts.ts";
import { ask } from "./ask.ts";
import { byCommand } from "../support/by-command.ts";

const dayMs = 86_400_000;
let service: HostileService;
let stand: ReconcileStand;
let skewMs = 0;
let db: ReconcileStand["database"]["db"];

beforeEach(async () => {
  service = await startHostileService();
  skewMs = 0;
  stand = await createReconcileStand(service.url);
  ({ db } = stand.database);
  await stand.run();
});
afterEach(async () => {
  await stand.close();
  await service.close();
});

const day = (offset: number) => new Date(Date.now() + offset * dayMs).toISOString().slice(0, 10);
/** Everything that the service holds was created in it. */
const everything = {
  fromUtc: `${day(-400)}T00:00:00Z`,
  toUtc: new Date(Date.now() - 30 * 60_000).toISOString(),
};
const proof = (asOf: string | null = null): Promise<Proof> => readProof(db, everything, asOf);
const verdict = async (): Promise<string> => (await proof()).verdict;
const databaseNow = async (): Promise<string> => {
  const { rows } = await db.raw<{ rows: { at: Date }[] }>("select clock_timestamp() as at");
  return rows[0]?.at.toISOString() ?? "";
};
/** Why the period could not be closed. */
const whyNot = async (): Promise<string> => {
  const period = { from: day(-400), to: day(0), timeZone: "UTC", ...everything };
  const asOf = await databaseNow();
  const unproved = { month: "2025-05", period, asOf, abouts: [], differing: new Map() };
  return refusalText(await whyNotProved(db, unproved));
};
const orderOf = (n: number) => service.objects["orders"]?.[n] ?? { id: "", created_at: "" };

/** A run that somebody ends while it waits to read again what it doubts. */
async function interruptedRun(runKey = "a night"): Promise<void> {
  const stop = new AbortController();
  const outcome = reconcile(
    stand.deps,
    { ...defaultReconcileSettings, graceMs: 600_000 },
    { kind: "full", runKey },
    {
      signal: stop.signal,
      onProgress: ({ waitMs }) => {
        if (waitMs > 0) stop.abort(new Error("stopped"));
      },
    },
  );
  await expect(outcome).rejects.toThrow("stopped");
}

const resume = (runKey = "a night") => stand.run({ kind: "full", runKey });

/** Some seconds later: an answer is dated in whole ones, and a look of the same second heals nothing. */
const later = (quirks: Quirks = {}): void => {
  skewMs += 5_000;
  service.quirks = { ...quirks, skewMs };
};

/** The mirror's amount is edited by hand, so that the next run doubts it. */
async function spoil(n = 3): Promise<void> {
  await db("mirror.orders").where("id", orderOf(n).id).update({ total: 5 });
  later();
}

describe("what a run left to be read again", () => {
  test("is not proved: INCOMPLETE over the run that ended before, and PASS once it was read", async () => {
    expect(await verdict()).toBe("PASS");
    await spoil();
    await interruptedRun();
    expect(await verdict()).toBe("INCOMPLETE");
    await resume();
    expect(await verdict()).toBe("PASS");
  });

  test("touches no period that had ended before the object was created", async () => {
    const [young, old] = [orderOf(3).created_at, orderOf(20).created_at].sort().reverse() as [string, string];
    const n = orderOf(3).created_at === young ? 3 : 20;
    await spoil(n);
    await interruptedRun();
    const before = { fromUtc: `${day(-400)}T00:00:00Z`, toUtc: old };
    expect((await readProof(db, before, null)).verdict).toBe("PASS");
    expect(await verdict()).toBe("INCOMPLETE");
  });

  test("is read by the next run, whichever that is", async () => {
    await spoil();
    await interruptedRun();
    const { totals, complete } = await stand.run({ kind: "nightly" });
    expect(totals.healed).toEqual({ mismatch: 1 });
    expect(complete).toBe(true);
    expect(await verdict()).toBe("PASS");
    expect(await db("reconcile.doubts").where("state", "waiting")).toEqual([]);
  });
});

test("a run that stopped for its key proves nothing of what it read, and takes from what was proved before", async () => {
  await spoil();
  later({
    object: (object) => (object?.id === orderOf(3).id ? refusal(401, "invalid_api_key") : undefined),
  });
  await expect(stand.run()).rejects.toMatchObject({ status: 401 });
  expect(await verdict()).toBe("INCOMPLETE");
  later();
  expect((await stand.run()).complete).toBe(true);
  expect(await verdict()).toBe("PASS");
});

test("an order that only its transaction told of is a hole where its own read says that it was created", async () => {
  const [sale] = service.objects["transactions"] ?? [];
  if (sale === undefined) throw new Error("no transaction");
  const created_at = new Date(Date.now() - 45 * 60_000).toISOString();
  const unread = { id: "order-unread", total: "12.50", currency: "usd", created_at };
  service.objects["transactions"]?.push({
    ...sale,
    id: "sale-of-unread",
    order_id: unread.id,
    created_at,
    updated_at: created_at,
  });
  later({
    object: (object, list) => (object === undefined && list === "orders" ? { body: unread } : undefined),
  });
  const { totals } = await stand.run({ kind: "nightly" });
  expect(totals.left).toMatchObject({ unreadable: 1 });
  const before = { fromUtc: `${day(-400)}T00:00:00Z`, toUtc: created_at };
  expect((await readProof(db, before, null)).verdict).toBe("PASS");
  expect(await verdict()).toBe("INCOMPLETE");
});

test("an object that cannot be read is a hole: for the run, for the reports, and not for the next night's window", async () => {
  const { total } = orderOf(20) as { total?: unknown };
  Object.assign(orderOf(20), { total: "12.50" });
  const result = await stand.run();
  expect(result).toMatchObject({
    complete: false,
    error: null,
    totals: { left: { unreadable: 1 } },
  });
  expect(result.coverage.gaps).toMatchObject([{ resource: "order" }]);
  expect(await verdict()).toBe("INCOMPLETE");
  await db("reconcile.findings").update({
    state: "acknowledged",
    ack_by: "ann",
    ack_at: new Date(0),
  });
  expect(await verdict()).toBe("INCOMPLETE");
  const { rows } = await db.raw<{ rows: { from: Date | null }[] }>(
    "select min(created_from) as from from reconcile.coverage where run = ? and step = 'window'",
    [(await stand.run({ kind: "nightly" })).run.id],
  );
  const from = rows[0]?.from;
  if (from !== null && from !== undefined) expect(from.getTime()).toBeGreaterThan(Date.now() - 3 * dayMs);
  Object.assign(orderOf(20), { total });
  const advised = /reconcile --from (\S+) --to (\S+)" reads it again/.exec(await whyNot());
  await stand.run({
    kind: "range",
    rangeFrom: new Date(advised?.[1] ?? ""),
    rangeTo: new Date(advised?.[2] ?? ""),
  });
  expect(await verdict()).toBe("PASS");
});

test("what a run says of itself, the reports say as well", async () => {
  const at = async (change: () => unknown, settings = {}) => {
    later();
    await change();
    const { complete, totals, run } = await stand.run({ kind: "full" }, settings);
    const said = !complete ? "INCOMPLETE" : Object.keys(totals.left).length > 0 ? "FAIL" : "PASS";
    const upToT0 = { fromUtc: `${day(-400)}T00:00:00Z`, toUtc: run.t0.toISOString() };
    expect((await readProof(db, upToT0, null)).verdict).toBe(said);
    return said;
  };
  const heard = [
    await at(() => undefined),
    await at(() => spoil(), { reportOnly: true }),
    await at(() => void Object.assign(orderOf(1), { subtotal: "1" })),
    await at(() => void Object.assign(orderOf(1), { subtotal: 1 })),
    await at(() => later({ instead: ({ list }) => (list === "transactions" ? refusal(400, "x") : undefined) })),
    await at(() => undefined),
  ];
  expect(new Set(heard)).toEqual(new Set(["PASS", "FAIL", "INCOMPLETE"]));
});

describe("findings touch the periods that they are about", () => {
  const of = (objectId: string, objectAt: string | null): Finding => ({
    key: `behind:order:${objectId}`,
    class: "behind",
    identity: null,
    severity: "critical",
    resource: "order",
    objectId,
    objectAt,
    differences: [],
    amountAtRiskMinor: 5n,
    currency: "usd",
    cause: "missed_webhook",
    evidence: {},
  });
  const sighting = { run: null, seenAt: new Date() };
  const until = async (toUtc: string) =>
    (await readProof(db, { fromUtc: `${day(-400)}T00:00:00Z`, toUtc }, null)).verdict;

  test("not a period that had ended before, but every later balance", async () => {
    await recordFindings(db, sighting, [of("x", `${day(-5)}T00:00:00Z`)]);
    expect(await until(`${day(-5)}T00:00:00Z`)).toBe("PASS");
    expect(await until(`${day(-4)}T00:00:00Z`)).toBe("FAIL");
    expect(await until(`${day(-1)}T00:00:00Z`)).toBe("FAIL");
  });

  test("one without a time of its own is as old as its object", async () => {
    const order = orderOf(0);
    await recordFindings(db, sighting, [of(order.id, null)]);
    expect(await until(new Date(order.created_at).toISOString())).toBe("PASS");
    expect(await until(new Date(Date.parse(order.created_at) + 1_000).toISOString())).toBe("FAIL");
  });

  test("one of which nobody knows when touches everything", async () => {
    await recordFindings(db, sighting, [of("nobody knows", null)]);
    expect(await until(`${day(-300)}T00:00:00Z`)).toBe("FAIL");
  });
});

describe("as of a time", () => {
  const year = { from: day(-300), to: day(0) };

  async function answers(asOf: string): Promise<unknown> {
    const reports = ["month-end", "daily-control", "exceptions"];
    const all = [];
    for (const name of reports) all.push(await ask(db, name, { ...year, asOf }));
    return [await proof(asOf), all];
  }

  test("every answer about what is proved stays the same, whatever is done later", async () => {
    await spoil();
    const kept: { asOf: string; said: unknown; after: string }[] = [];
    const steps: Record<string, () => Promise<unknown>> = {
      "interrupt a run": () => interruptedRun(),
      "resume it": () => resume(),
      "fail a slice": async () => {
        later({ instead: ({ list }) => (list === "transactions" ? refusal(400, "x") : undefined) });
        await stand.run();
        later();
      },
      "spoil, and interrupt again": async () => {
        await spoil(7);
        await interruptedRun("another");
      },
      "resume what was interrupted": () => resume("another"),
      "lose rows in a list": async () => {
        later({
          maxLimit: 10,
          page: (page, { list }) => (list === "orders" ? { ...page, data: page.data.filter((_, n) => n !== 2) } : page),
        });
        await stand.run();
        later();
      },
      "find and acknowledge": async () => {
        Object.assign(orderOf(9), { total: "9" });
        await stand.run();
        const [finding] = await db("reconcile.findings").where("class", "unreadable");
        await acknowledgeFinding(db, {
          id: finding.id,
          by: byCommand("ann"),
          note: "x",
          at: new Date(),
        });
      },
      heal: async () => {
        Object.assign(orderOf(9), { total: 9 });
        await stand.run();
        await healFindings(db, { run: null, seenAt: new Date() }, ["unreadable"]);
      },
      "begin a run and be killed": () =>
        db("reconcile.runs").insert({ run_key: "killed", kind: "full", t0: new Date() }),
      "run again": () => stand.run(),
    };
    for (const [name, step] of Object.entries(steps)) {
      await step();
      const asOf = await databaseNow();
      kept.push({ asOf, said: await answers(asOf), after: name });
      for (const { asOf: then, said, after } of kept) {
        expect(await answers(then), `as of after "${after}", asked after "${name}"`).toEqual(said);
      }
    }
    const verdicts = kept.map(({ said }) => ((said as unknown[])[0] as Proof).verdict);
    expect(new Set(verdicts)).toEqual(new Set(["PASS", "INCOMPLETE"]));
  });

  test("a run that is resumed has two ends, and what it had proved at the first one stays so", async () => {
    await spoil();
    await interruptedRun();
    await db("reconcile.runs").where("run_key", "a night").update({ state: "abandoned" });
    await resume();
    const states = await db("reconcile.run_states as s")
      .join("reconcile.runs as r", "r.id", "s.run")
      .where("r.run_key", "a night")
      .orderBy("s.id")
      .pluck("s.state");
    expect(states).toEqual(["running", "abandoned", "running", "incomplete", "complete"]);
  });
});
