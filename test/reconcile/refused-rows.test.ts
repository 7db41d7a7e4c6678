import { afterEach, beforeEach, expect, test } from "vitest";
import { rounds } from "../support/rounds.ts";
import { refuseOrder } from "../worker/worker-stand.ts";
import { type HostileService, startHostileService } from "./hostile-service.ts";
import { none } from "./none.ts";
import { type ReconcileStand, createReconcileStand } from "./reconcile-stand.ts";

let service: HostileService;
let stand: ReconcileStand;

beforeEach(async () => {
  service = await startHostileService();
  stand = await createReconcileStand(service.url);
});

afterEach(async () => {
  await stand.close();
  await service.close();
});

const idsOf = (table: string) => stand.database.db(`mirror.${table}`).orderBy("id").pluck<string[]>("id");
const findings = () =>
  stand.database.db("reconcile.findings").where({ state: "open" }).select("class", "object_id", "evidence");

test.each(["54000", "22001", "23514"].slice(0, rounds(1, 3)))(
  "an object that the database refuses with %s costs a run no other, and is a finding until it is taken",
  async (code) => {
    const { db } = stand.database;
    const heal = await refuseOrder(db, "order-0003", code);
    const first = await stand.run({ kind: "import" });
    expect(first).toMatchObject({ complete: false, error: null });
    expect(await idsOf("orders")).toEqual(
      service.objects["orders"]!.map(({ id }) => id)
        .filter((id) => id !== "order-0003")
        .toSorted(),
    );
    expect(await idsOf("transactions")).toHaveLength(30);
    expect(await findings()).toEqual([
      {
        class: "unreadable",
        object_id: "order-0003",
        evidence: { reason: expect.stringContaining(code) },
      },
    ]);
    expect(await stand.run({ kind: "nightly" })).toMatchObject({ complete: false, error: null });
    await heal();
    expect(await stand.run()).toMatchObject({ complete: true, totals: { left: none } });
    expect(await idsOf("orders")).toHaveLength(30);
    expect(await findings()).toEqual([]);
  },
);

test("a recheck of an object that the database refuses ends like that of one that cannot be read", async () => {
  await stand.run();
  const { db } = stand.database;
  await db("mirror.orders").where({ id: "order-0003" }).update({ total: 1 });
  // A read heals only what an earlier one wrote, and the service dates its answers in whole seconds.
  service.quirks = { skewMs: 5_000 };
  const heal = await refuseOrder(db, "order-0003", "54000");
  expect(await stand.run()).toMatchObject({ complete: false, error: null });
  expect(await findings()).toMatchObject([{ class: "unreadable", object_id: "order-0003" }]);
  await heal();
  expect(await stand.run()).toMatchObject({ complete: true, totals: { left: none } });
});

test("a column that was stored before it was cut is no drift", async () => {
  const long = `N${"0123456789".repeat(70)}`;
  for (const order of service.objects["orders"]!.slice(0, 2)) order["order_number"] = long;
  await stand.run();
  const { db } = stand.database;
  const changed = await db("mirror.orders").whereRaw("length(order_number) = 500").update({ order_number: long });
  expect(changed).toBe(2);
  const again = await stand.run();
  expect(again).toMatchObject({ complete: true, totals: { left: none, healed: none } });
  expect(await findings()).toEqual([]);
});
