import type { Knex } from "knex";
import { afterEach, describe, expect, test } from "vitest";
import { sweepAlerts } from "../../src/parts/alerts/run-alerts.ts";
import { sweepQuestions } from "../alerts/sweep-questions.ts";
import { registerAlerts } from "../../src/parts/alerts/cli/alerts.ts";
import { registerCustomers } from "../../src/main/cli/customers.ts";
import { registerEvents } from "../../src/parts/browse/events/command.ts";
import { registerFindings } from "../../src/parts/reconcile/cli/findings.ts";
import { createAccount } from "../../src/app/people/accounts.ts";
import { addNote } from "../../src/app/people/cases.ts";
import { wallClock } from "../../src/platform/clock.ts";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { seededRandom } from "../../src/platform/random.ts";
import { createJobQueue } from "../../src/core/queue/job-queue.ts";
import { defaultAccounts } from "../../src/parts/reports/base/account-map.ts";
import { closeMonth } from "../../src/parts/reports/close/close-month.ts";
import { defaultEnvelopePaths } from "../../src/core/contract/event-envelope.ts";
import { startWorker } from "../../src/core/worker/start-worker.ts";
import { settingsOf, testAlertContext, toldTo } from "../alerts/test-alert-context.ts";
import { runCommand } from "../main/cli/command-line.ts";
import { testBackends, untilAnswering } from "../queue/backends.ts";
import { startStand } from "../receiver/receiver-stand.ts";
import { startHostileService } from "../reconcile/hostile-service.ts";
import { createReconcileStand } from "../reconcile/reconcile-stand.ts";
import { letTimePass } from "../reports/sandbox-history.ts";
import { eventually } from "../support/eventually.ts";
import { everyKey, everyRow, heldIn } from "../support/everything-stored.ts";
import { type Person, createPerson } from "./person.ts";

const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

const settings = settingsOf({ channels: { log: { kind: "stdout" } } });

/** Service, receiver, queue, worker and reconciliation of one deployment. */
async function deploy(backend: (typeof testBackends)[number]) {
  const service = await startHostileService(0);
  open.push(() => service.close());
  const stand = await createReconcileStand(service.url, { settings });
  open.push(() => stand.close());
  const { deps, database } = stand;
  const { location, destroy } = await backend.start();
  open.push(destroy);
  const queue = createJobQueue(deps, location);
  open.push(() => queue.close());
  await untilAnswering(queue);
  const receiver = await startStand(database.url);
  open.push(() => receiver.close());
  const alerts = testAlertContext({ settings, serviceClock: deps.serviceClock });
  const random = seededRandom("worker");
  const places = defaultEnvelopePaths;
  const worker = startWorker(
    {
      ...deps,
      random,
      places,
      ...toldTo(alerts),
      missingGraceMs: 1_000,
      foreignAccount: async () => null,
      queue,
    },
    { concurrency: 2, relayIntervalMs: 50 },
  );
  open.push(() => worker.close());

  let sent = 0;
  async function deliver(bodies: readonly (object | string)[]): Promise<number[]> {
    const before = receiver.committed.length;
    for (const body of bodies) {
      const envelope = (event: object): object => ({
        id: `evt_${(sent += 1)}`,
        created_at: "2025-05-10T10:00:00.000Z",
        ...event,
      });
      const text = typeof body === "string" ? body : JSON.stringify(envelope(body));
      // As the service does, which sends again what was refused for want of time.
      const { status } = await eventually("the receiver is not overloaded", async () => {
        const answer = await receiver.send(text);
        return answer.status === 503 ? null : answer;
      });
      expect(status).toBe(200);
    }
    const seqs = receiver.committed.slice(before).flat();
    await queue.add();
    await settled();
    return seqs;
  }
  const settled = (): Promise<unknown> =>
    eventually(
      "every event and read is settled",
      async () =>
        (await database.db("inbox.progress").where({ state: "received" }).first()) === undefined &&
        (await database.db("inbox.fetches").where("due_at", "<=", database.db.fn.now()).first()) === undefined,
      { withinMs: 240_000 },
    );
  const command = async (register: Parameters<typeof runCommand>[0], ...args: string[]) => {
    const run = await runCommand(register, args, { env: { DATABASE_URL: database.url } });
    expect(run.error).toBeNull();
    return run.out + run.err;
  };
  /** By place. */
  async function everything(): Promise<Map<string, string>> {
    const queued =
      location.kind === "redis"
        ? [["redis", await everyKey(location.url)] as const]
        : [...(await everyRow(createQueueReader(location.url)))];
    return new Map([
      ...(await everyRow(database.db)),
      ...queued.map(([name, text]) => [`queue: ${name}`, text] as const),
      ["log", stand.logged() + receiver.logged()],
    ]);
  }
  /** As often as there is something to look through: the first look only remembers where it began. */
  const sweep = async (): Promise<void> => {
    for (let n = 0; n < 3; n++) await sweepAlerts({ ...deps, ...sweepQuestions }, alerts);
  };
  return { service, stand, db: database.db, deliver, settled, sweep, command, everything };
}

function createQueueReader(url: string): Knex {
  const db = createDatabase({ url, poolMax: 1, applicationName: "tallyhook test" });
  open.push(() => db.destroy());
  return db;
}

/** On the order of each person, on a finding and an alert about them, and on something else that names them. */
async function writeNotes(db: Knex, people: readonly (Person & { digits: string })[]) {
  const author = await db.transaction((trx) =>
    createAccount(trx, { email: "anna@example.com", roles: ["support"], passwordHash: null }),
  );
  const actor = {
    accountId: author.id,
    name: author.email,
    via: "dashboard",
    address: null,
  } as const;
  for (const { digits, email, mark } of people) {
    const [finding] = await db("reconcile.findings").where("object_id", "like", `%${digits}`).pluck("id");
    const [alert] = await db("alerts.alerts").where("order_id", "like", `%${digits}`).pluck("id");
    const subjects = [
      { kind: "dunning", id: `order-of-${digits}` },
      { kind: "chargeback", id: `order-of-${digits}` },
      { kind: "finding", id: String(finding) },
      { kind: "alert", id: String(alert) },
    ] as const;
    for (const subject of subjects) {
      await db.transaction((trx) => addNote(trx, actor, subject, { text: mark(), now: wallClock.now() }));
    }
    const other = { kind: "alert", id: "0" } as const;
    const text = `wrote to ${email}`;
    await db.transaction((trx) => addNote(trx, actor, other, { text, now: wallClock.now() }));
  }
}

/** Those of a person's markers that stand somewhere in any form, with their places. */
function found(places: ReadonlyMap<string, string>, { markers }: Person): string[] {
  return [...places].flatMap(([place, text]) => heldIn(text, markers).map((marker) => `${place}: ${marker}`));
}

const eventOf = ({ type, object }: { type: string; object: object }): object => ({
  type,
  data: { object },
});
const strayOf = (stray: object | string): object | string =>
  typeof stray === "string" ? stray : eventOf(stray as { type: string; object: object });

describe.each(testBackends)("an erased person, with jobs in $name", (backend) => {
  test("is found nowhere, whatever arrives later, and nobody else is touched", { timeout: 900_000 }, async () => {
    const { service, stand, db, deliver, settled, sweep, command, everything } = await deploy(backend);
    const [jane, joe] = [createPerson("jane", "555123"), createPerson("joe", "777456")];
    const people = [jane, joe];
    let shownOfJoe = joe.objects(0);
    const show = (version: number): void => {
      if (version < 2) shownOfJoe = joe.objects(version);
      const shown = [jane.objects(version), shownOfJoe];
      for (const list of ["customers", "orders", "subscriptions", "transactions"] as const) {
        service.objects[list] = shown.flatMap((objects) => objects[list]);
      }
    };

    // Everything that makes the program write: events, reads, an import, drift, alerts, notes, a close.
    show(0);
    await sweep();
    const first = await deliver([
      ...people.flatMap((person) => person.events(0)).map(eventOf),
      ...people.flatMap((person) => person.strays()).map(strayOf),
    ]);
    await stand.run();
    show(1);
    await stand.run();
    const noted = [];
    for (const { id } of await db("reconcile.findings").whereNot({ state: "healed" })) {
      noted.push(command(registerFindings, "findings", "ack", String(id), "--note", "known"));
    }
    await Promise.all(noted);
    for (const person of people) {
      const of = person === jane ? "555123" : "777456";
      await db("reconcile.findings").where("object_id", "like", `%${of}`).update({ ack_note: person.mark() });
      const [alert] = await db("alerts.alerts").where("order_id", "like", `%${of}`).pluck("id");
      await command(registerAlerts, "alerts", "ack", String(alert), "--note", person.mark());
    }
    await writeNotes(db, [
      { ...jane, digits: "555123" },
      { ...joe, digits: "777456" },
    ]);
    await sweep();
    await letTimePass(db);
    const close = {
      month: "2025-05",
      timeZone: "UTC",
      accounts: defaultAccounts,
      reason: "test",
      by: "anna",
    };
    await closeMonth(db, close);
    const before = await everything();
    const kept = found(before, joe);
    const all = new Set(found(before, jane).map((each) => each.split(": ").at(-1)));
    // What an answer embeds beyond what is mirrored (payment methods, cycles) is nowhere before either.
    expect(all.size).toBeGreaterThan(jane.markers.size / 2);
    expect(before.get("reports.closed_rows")).not.toBe("");
    // No closed month holds anything personal, so that its hash stands for ever.
    const frozen = [...before].filter(([place]) => place.startsWith("reports."));
    expect(found(new Map(frozen), jane)).toEqual([]);

    await command(registerCustomers, "customers", "erase", "customer-of-555123", "--yes");
    expect(found(await everything(), jane)).toEqual([]);

    // Later events, a replay, what the service still shows, and what it shows next.
    await deliver([...jane.events(2).map(eventOf), ...jane.strays().map(strayOf)]);
    await command(registerEvents, "events", "replay", ...first.slice(0, 3).map(String));
    await settled();
    show(2);
    const findings = await db("reconcile.findings").where("object_id", "like", "%555123").count();
    expect(await stand.run()).toMatchObject({ complete: true });
    await stand.run();
    await sweep();
    const after = await everything();
    expect(found(after, jane)).toEqual([]);
    expect(found(after, joe)).toEqual(kept);
    expect(await db("reconcile.findings").where("object_id", "like", "%555123").count()).toEqual(findings);
    // The books are as they were.
    expect(await db("mirror.orders").where({ id: "order-of-555123" }).first()).toMatchObject({
      customer_id: "customer-of-555123",
      status: "failed",
      total: "1000",
      failure_code: "insufficient_funds",
      failure_reason: "[redacted]",
      coupon_code: "SPRING",
      card_brand: "visa",
    });
    show(3);
    await stand.run();
    expect(found(await everything(), jane)).toEqual([]);
  });
});
