import { afterAll, beforeAll, expect, test } from "vitest";
import { registerHeal } from "../../../src/parts/reconcile/cli/heal.ts";
import { readAudit } from "../../../src/app/people/audit.ts";
import { driftKey } from "../../../src/parts/reconcile/findings/drift-findings.ts";
import { recordFindings } from "../../../src/parts/reconcile/findings/findings.ts";
import { testKey } from "../../../src/parts/sandbox/engine/keys.ts";
import { type HostileService, startHostileService } from "../../reconcile/hostile-service.ts";
import { type ReconcileStand, createReconcileStand } from "../../reconcile/reconcile-stand.ts";
import { refuseOrder } from "../../worker/worker-stand.ts";
import { runCommand } from "./command-line.ts";

let service: HostileService;
let stand: ReconcileStand;
beforeAll(async () => {
  service = await startHostileService(5);
  stand = await createReconcileStand(service.url);
  await stand.run();
});
afterAll(async () => {
  await stand.close();
  await service.close();
});

const heal = (args: readonly string[], given: { stdin?: string; terminal?: boolean } = {}) =>
  runCommand(registerHeal, ["heal", "order", "order-0003", "--from-service", "--by", "ann", ...args], {
    env: {
      DATABASE_URL: stand.database.url,
      SVC_BASE_URL: service.url,
      SVC_API_KEY: testKey,
    },
    ...given,
  });
const total = async () => (await stand.database.db("mirror.orders").where("id", "order-0003").first("total")).total;

test("shows what would change, asks, and writes it with a reason, or after --yes", async () => {
  const { db } = stand.database;
  await db.raw(`update mirror.orders set version = '9999' || substr(version, 5), total = 5 where id = 'order-0003'`);
  const unanswered = await heal(["--reason", "spoiled"]);
  expect(String(unanswered.error)).toContain("Add --yes");
  const refused = await heal(["--reason", "spoiled"], { stdin: "n\n", terminal: true });
  expect(String(refused.error)).toContain("nothing was done");
  expect(refused.out).toMatch(/total.*5.*1003/);
  expect(refused.out).toContain("Versions dated in the future");
  expect(await total()).toBe("5");
  expect(String((await heal(["--yes"])).error)).toContain("--reason");
  expect(String((await heal(["--yes", "--reason", " "])).error)).toContain("argument ' ' is invalid. Use a text");
  await recordFindings(db, { run: null, seenAt: new Date() }, [
    {
      key: driftKey("mismatch", "order", "order-0003"),
      class: "mismatch",
      identity: null,
      severity: "high",
      resource: "order",
      objectId: "order-0003",
      differences: [],
      amountAtRiskMinor: null,
      currency: null,
      cause: null,
      evidence: {},
    },
  ]);
  const findings = (await db("reconcile.findings").pluck<string[]>("id")).map(Number);
  const done = await heal(["--yes", "--reason", "spoiled"]);
  expect(done.error).toBeNull();
  expect(done.out).toContain("The order order-0003 is now as the service shows it; healed by ann.");
  expect(await total()).toBe("1003");
  expect(await db("mirror.heals").select("healed_by", "reason")).toEqual([{ healed_by: "ann", reason: "spoiled" }]);
  expect(await readAudit(db, { action: "object.healed", limit: 10 })).toMatchObject([
    {
      actor: "ann",
      via: "command line",
      subject: { kind: "order", id: "order-0003" },
      before: { sha256: expect.stringMatching(/^[0-9a-f]{64}$/), findings },
    },
  ]);
  expect(await db("reconcile.findings").pluck("state")).toEqual(["healed"]);
});

test.each(["22001", "23514", "54000", "P0001"])(
  "a row that the database refuses (%s) is a mistake to report, and nothing is written of it",
  async (sqlstate) => {
    const { db } = stand.database;
    const undo = await refuseOrder(db, "order-0003", sqlstate);
    const heals = await db("mirror.heals").count();
    const { error } = await heal(["--yes", "--reason", "spoiled"]);
    await undo();
    expect(error).toMatchObject({ exitCode: 64, message: expect.stringContaining(sqlstate) });
    expect(await db("mirror.heals").count()).toEqual(heals);
  },
);
