import { afterEach, beforeEach, expect, test } from "vitest";
import { registerHeal } from "../../../src/parts/reconcile/cli/heal.ts";
import { readAudit } from "../../../src/app/people/audit.ts";
import { testKey } from "../../../src/parts/sandbox/engine/keys.ts";
import { type HostileService, refusal, startHostileService } from "../../reconcile/hostile-service.ts";
import { type ReconcileStand, createReconcileStand } from "../../reconcile/reconcile-stand.ts";
import { refuseOrder } from "../../worker/worker-stand.ts";
import { runCommand } from "./command-line.ts";

const never = "9999-01-01T00:00:00.000Z";
const objects = 12;
let service: HostileService;
let stand: ReconcileStand;
let db: ReconcileStand["database"]["db"];

/** The service dates every order in the future, and shows another total. */
beforeEach(async () => {
  service = await startHostileService(objects);
  stand = await createReconcileStand(service.url);
  ({ db } = stand.database);
  await stand.run();
  for (const order of service.objects["orders"] ?? []) {
    Object.assign(order, { updated_at: never, description: "as the service shows it" });
  }
  await stand.run();
});
afterEach(async () => {
  await stand.close();
  await service.close();
});

const command = (args: readonly string[], given: { stdin?: string; terminal?: boolean } = {}) =>
  runCommand(registerHeal, ["heal", ...args, "--by", "ann"], {
    env: { DATABASE_URL: stand.database.url, SVC_BASE_URL: service.url, SVC_API_KEY: testKey },
    ...given,
  });
const all = ["misdated", "--from-service", "--reason", "the service dates them 9999"];
const waiting = async () => Number((await db("mirror.misdated").count("* as n"))[0]?.["n"]);
const healed = () => db("mirror.orders").where("description", "as the service shows it").pluck<string[]>("id");
const recorded = () => readAudit(db, { action: "misdated.healed", limit: 10 });

test("all objects that are dated in the future are healed at once, after it was shown and asked, as one act with a count", async () => {
  expect(await waiting()).toBe(objects);
  expect(String((await command(all)).error)).toContain("Add --yes");
  const refused = await command(all, { stdin: "n\n", terminal: true });
  expect(String(refused.error)).toContain("nothing was done");
  expect(refused.out).toContain("12 objects are dated in the future");
  expect(refused.out).toMatch(/description.*\(differs\)/);
  expect([await waiting(), await healed()]).toEqual([objects, []]);

  const done = await command([...all, "--yes"]);
  expect(done.error).toBeNull();
  expect(done.out).toContain("12 objects are now as the service shows them; healed by ann.");
  expect([await waiting(), (await healed()).length]).toEqual([0, objects]);
  expect(await db("mirror.heals").distinct("healed_by", "reason")).toEqual([
    { healed_by: "ann", reason: "the service dates them 9999" },
  ]);
  expect(await recorded()).toMatchObject([{ actor: "ann", after: { count: objects } }]);

  const again = await command([...all, "--yes"]);
  expect([again.error, again.out]).toEqual([null, expect.stringContaining("nothing is to be")]);
});

test("the command that the alert names ends it", async () => {
  const alert = () => db("alerts.alerts").where("rule", "event_future").first();
  const { message } = await db("alerts.outbox")
    .where("alert_id", (await alert()).id)
    .first();
  const [, line = ""] = /"node src\/bin\/tallyhook\.js heal ([^"]+)"/.exec(message.advice) ?? [];
  expect((await alert()).state).toBe("open");
  expect((await command([...line.split(" "), "--yes"])).error).toBeNull();
  expect((await alert()).state).toBe("resolved");
});

test("one that the service does not know is waited for no more, one that it cannot show is left, and the others are healed", async () => {
  service.quirks = {
    object: (object) =>
      object?.id === "order-0001"
        ? refusal(404, "resource_not_found")
        : object?.id === "order-0002"
          ? { body: { ...object, total: "a lot" } }
          : undefined,
  };
  const run = await command([...all, "--yes"]);
  expect(run.out).toContain("does not know order order-0001: nothing waits for it any more");
  expect(String(run.error)).toContain("1 object was left: order order-0002");
  expect(await db("mirror.misdated").pluck("id")).toEqual(["order-0002"]);
  expect(await healed()).toHaveLength(objects - 2);
});

test("a run that the service ends goes on with the rest when it is repeated, and each is in the record", async () => {
  let reads = 0;
  service.quirks = {
    object: () => {
      reads += 1;
      return reads > 14 ? refusal(401, "invalid_api_key") : undefined;
    },
  };
  expect((await command([...all, "--yes"])).error).not.toBeNull();
  const left = await waiting();
  expect(left).toBeGreaterThan(0);
  expect(left).toBeLessThan(objects);
  service.quirks = {};
  expect((await command([...all, "--yes"])).error).toBeNull();
  expect([await waiting(), (await healed()).length]).toEqual([0, objects]);
  expect((await recorded()).map(({ after }) => after)).toEqual([{ count: left }, { count: objects }]);
});

test.each([
  [["misdated", "order-0001", "--from-service", "--reason", "x"], "commander.excessArguments"],
  [["misdated", "--from-service"], "commander.missingMandatoryOptionValue"],
  [["order", "--from-service", "--reason", "x"], "commander.missingArgument"],
])("heal %j is used wrongly", async (args, code) => {
  expect((await command([...args, "--yes"])).error).toMatchObject({ code });
});

test("an object that the database refuses keeps no other from being healed, and is named with its code", async () => {
  const undo = await refuseOrder(db, "order-0001", "54000");
  const done = await command([...all, "--yes"]);
  await undo();
  expect(done.error).toMatchObject({
    exitCode: 64,
    message: expect.stringMatching(/order order-0001 \(.*54000/),
  });
  expect(await waiting()).toBe(1);
  expect((await healed()).length).toBe(objects - 1);
  expect(await recorded()).toMatchObject([{ actor: "ann", after: { count: objects } }]);
});
