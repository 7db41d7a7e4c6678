import { beforeEach, describe, expect, it } from "vitest";
import { registerCustomers } from "../../../src/main/cli/customers.ts";
import { changeOf, feedSource, readObjects } from "../../../src/parts/delivery/dispatch/feed-source.ts";
import { planRuns, registerRecipient } from "../../../src/parts/delivery/dispatch/plan-runs.ts";
import { replayEvents } from "../../../src/core/inbox/retention.ts";
import { compareStates } from "../../../src/core/mirror/compare/compare-states.ts";
import { applySnapshots } from "../../../src/core/mirror/write/apply.ts";
import type { Snapshot } from "../../../src/core/mirror/snapshot.ts";
import { decode } from "../../../src/core/mirror/resources.ts";
import { createAccount } from "../../../src/app/people/accounts.ts";
import { type CaseKind, addNote } from "../../../src/app/people/cases.ts";
import { readAudit } from "../../../src/app/people/audit.ts";
import { recordFindings } from "../../../src/parts/reconcile/findings/findings.ts";
import { applyBatch } from "../../../src/core/worker/apply-batch.ts";
import { runTallyhook } from "../../e2e/program.ts";
import { progressOf, storeRow } from "../../inbox/stored-events.ts";
import {
  apply,
  at,
  rowOf,
  sampleCustomer,
  sampleEntry,
  sampleOrder,
  sampleSubscription,
  sampleTransaction,
  seen,
  shown,
} from "../../mirror/samples.ts";
import { untilWaiting } from "../../support/until-waiting.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { applyDeps, emptyAll, poisonOrder, storeEvent } from "../../worker/worker-stand.ts";
import { type CommandRun, runCommand } from "./command-line.ts";
import { emptyTables } from "../../support/empty-tables.ts";

const database = useTestDatabase();
beforeEach(async () => {
  await emptyAll(database.db);
  await emptyTables(database.db, ["mirror.erasures", "reconcile.findings"]);
});

const address = {
  id: "address-1",
  full_name: "Jane Doe",
  address_line1: "1 Private Road",
  city: "Smalltown",
  country: "US",
};
const card = { id: "card-1", card_last_four: "4242", card_brand: "visa" };
const customer = sampleCustomer({
  last_name: "Doe",
  phone: "+15550100",
  shipping_address: address,
});
const order = sampleOrder({
  shipping_address: address,
  payment_method: card,
  description: "for Jane",
  metadata: { note: "Jane's birthday" },
  transactions: [sampleEntry()],
});
const sale = sampleTransaction({ payment_method: card, metadata: { who: "Jane" } });
const subscription = sampleSubscription({
  shipping_address: address,
  payment_method: card,
  failure_reason: "Jane has no money",
  attempt_count: 1,
});

/** What would tell who it is, wherever it stands. */
const secrets = ["Jane", "jane@", "Doe", "+15550100", "Private", "Smalltown", "4242"];

async function everything(): Promise<string> {
  const tables = ["orders", "transactions", "subscriptions", "customers", "versions"];
  const rows = await Promise.all(
    tables.map((table) => database.db(`mirror.${table}`).whereRaw("to_jsonb(??)::text not like '%customer-2%'", table)),
  );
  const bodies = await database.db<{ raw: Buffer | null }>("inbox.receipts").select("raw");
  const findings = await database.db("reconcile.findings");
  const formerFindings = await database.db("reconcile.finding_versions");
  return (
    JSON.stringify(rows) +
    JSON.stringify(findings) +
    JSON.stringify(formerFindings) +
    bodies.map(({ raw }) => raw?.toString("utf8") ?? "").join("\n")
  );
}

const erase = (...args: string[]): Promise<CommandRun> =>
  runCommand(registerCustomers, ["customers", "erase", ...args], {
    env: { DATABASE_URL: database.url },
  });

const observations = (updatedAt = at(0)): Snapshot[] => [
  seen("customer", { ...customer, updated_at: updatedAt }, 900),
  seen("order", { ...order, updated_at: updatedAt }, 900),
  seen("transaction", { ...sale, updated_at: updatedAt }, 900),
  seen("subscription", { ...subscription, updated_at: updatedAt }, 900),
];

async function fill(): Promise<void> {
  await apply(database.db, shown("customer", { ...customer, phone: "+15550100" }));
  await apply(database.db, ...observations());
}

const answering = (stdin: string, ...args: string[]): Promise<CommandRun> =>
  runCommand(registerCustomers, ["customers", "erase", ...args], {
    env: { DATABASE_URL: database.url },
    stdin,
    terminal: true,
  });

describe("customers erase", () => {
  it("shows before it asks by what one knows the person, and no more than that", async () => {
    await fill();
    await apply(
      database.db,
      seen("order", sampleOrder({ id: "order-0", order_number: "ZZ", created_at: at(-86_400) }), 900),
    );
    const { err, error } = await answering("n\r", "customer-1");
    expect(String(error)).toContain("nothing was done");
    expect(err).toMatch(/Customer +customer-1\n +Name +J\. D\.\n +E-mail +j…@e…\.com\n +Orders +2\n/);
    expect(err).toMatch(/Last order +AB12CD34, of 1 Mar 2025, 10\.00 USD, succeeded\n/);
    expect(err).toContain("Redact everything that identifies this customer?");
    expect(err).not.toMatch(/Jane|Doe|@example/);
    expect(await everything()).toContain("Jane");

    expect((await answering("y\r", "customer-1")).error).toBeNull();
    expect(await everything()).not.toContain("Jane");
    const again = await answering("n\r", "customer-1");
    expect(again.err).toMatch(/Name +none\n +E-mail +none\n.*\n.*\n +Erased before +\d/);
  });

  it.each<[string, () => Promise<unknown>]>([
    [
      "a transaction",
      () => apply(database.db, seen("transaction", sampleTransaction({ metadata: { who: "Jane" } }), 9)),
    ],
    [
      "a state that is not believed",
      () =>
        apply(database.db, {
          ...seen("customer", sampleCustomer({ updated_at: "9999-01-01T00:00:00Z" }), 9),
        }),
    ],
    [
      "an order that has moved",
      async () => {
        await apply(database.db, seen("order", order, 9));
        const moved = sampleOrder({ customer_id: "customer-2", updated_at: at(60) });
        await apply(database.db, seen("order", moved, 90));
      },
    ],
    [
      "an event that is dead",
      async () => {
        const bad = { ...order, customer_id: "customer-1", id: 7, description: "Jane" };
        const seq = await storeEvent(database.db, "order.created", bad);
        await applyBatch(applyDeps(database.db), [seq]);
        expect((await progressOf(database.db, seq)).state).toBe("dead");
      },
    ],
    ["bytes that are no JSON", () => storeRow(database.db, { raw: Buffer.from("{ customer-1: Jane Doe") })],
  ])("finds a person who is known by %s alone", async (_, known) => {
    await known();
    expect(await everything()).toContain("Jane");
    expect((await erase("customer-1", "--yes")).error).toBeNull();
    expect(await everything()).not.toContain("Jane");
    const unbelieved = await database.db("mirror.unbelieved");
    expect(JSON.stringify(unbelieved)).not.toContain("Jane");
  });

  it("finds by the addresses that only an event showed the events with an address alone", async () => {
    const dead = sampleCustomer({ updated_at: 7, created_at: 7, email: "Jane@Example.com" });
    const seqs = [
      await storeEvent(database.db, "customer.created", dead),
      await storeEvent(database.db, "mail.sent", { to: "jane@example.com", text: "Dear Jane" }),
    ];
    await applyBatch(applyDeps(database.db), seqs);
    expect((await erase("customer-1", "--yes")).error).toBeNull();
    expect(await everything()).not.toMatch(/jane/i);
  });

  it("leaves nothing that tells who it was in rows, history, bytes and findings", async () => {
    await storeEvent(database.db, "customer.created", customer);
    const seq = await storeEvent(database.db, "order.created", { ...order, customer });
    await applyBatch(applyDeps(database.db), [seq - 1, seq]);
    await storeRow(database.db, { raw: Buffer.from("no JSON, but of customer-1: Jane Doe") });
    await fill();
    await recordFindings(database.db, { run: null, seenAt: new Date(at(0)) }, [
      {
        key: "mismatch:customer:customer-1",
        class: "mismatch",
        identity: null,
        severity: "warning",
        resource: "customer",
        objectId: "customer-1",
        differences: [{ field: "email", service: "jane@example.com", mirror: "Jane" }],
        amountAtRiskMinor: null,
        currency: null,
        cause: null,
        evidence: {},
      },
    ]);
    const before = await everything();
    for (const secret of secrets) expect(before).toContain(secret);

    const { out, error } = await erase("customer-1", "--yes", "--by", "ada", "--reason", "asked to");
    expect(error).toBeNull();
    expect(out).toContain("customer-1 is redacted: orders 1, transactions 1, subscriptions 1");
    const after = await everything();
    for (const secret of secrets) expect(after).not.toContain(secret);
    expect(after).toContain("mismatch:customer:customer-1");
  });

  it("removes what people wrote on the person's cases, and about the person on others'", async () => {
    await fill();
    const ada = await database.db.transaction((trx) =>
      createAccount(trx, {
        email: "ada@example.com",
        roles: ["support"],
        passwordHash: null,
      }),
    );
    const write = (kind: CaseKind, id: string, text: string) =>
      database.db.transaction((trx) => {
        const actor = { accountId: ada.id, name: "ada", via: "dashboard", address: null } as const;
        return addNote(trx, actor, { kind, id }, { text, now: new Date(at(0)) });
      });
    await recordFindings(database.db, { run: null, seenAt: new Date(at(0)) }, [
      {
        key: "mismatch:order:order-1",
        class: "mismatch",
        identity: null,
        severity: "warning",
        resource: "order",
        objectId: "order-1",
        differences: [],
        amountAtRiskMinor: null,
        currency: null,
        cause: null,
        evidence: {},
      },
    ]);
    const [finding = ""] = await database.db("reconcile.findings").pluck<string[]>("id");
    await write("dunning", "order-1", "called at home");
    await write("chargeback", "order-1", "sent the letter");
    await write("finding", finding, "asked the service about it");
    await write("dunning", "order-of-another", "lives with Jane Doe, Smalltown");
    await write("dunning", "order-of-another", "see jane@example.com as well");
    await write("dunning", "order-of-another", "promised to pay");

    const { out } = await erase("customer-1", "--yes");
    expect(out).toContain("notes 5");
    expect(await database.db("people.notes").pluck("text")).toEqual(["promised to pay"]);
  });

  it("keeps what the books need", async () => {
    await fill();
    await erase("customer-1", "--yes");
    expect(await rowOf(database.db, "orders", "order-1")).toMatchObject({
      total: "1000",
      customer_id: "customer-1",
      order_number: "AB12CD34",
      card_brand: "visa",
      card_last_four: "[redacted]",
      data: { shipping_address: { id: "address-1", country: "US" }, status: "succeeded" },
    });
    expect(await rowOf(database.db, "transactions", "sale-1")).toMatchObject({ amount: "1000" });
  });

  it("touches nobody else", async () => {
    await fill();
    const other = sampleCustomer({ id: "customer-2", email: "joe@example.com" });
    await apply(database.db, seen("customer", other, 900));
    await erase("customer-1", "--yes");
    expect(await rowOf(database.db, "customers", "customer-2")).toMatchObject({
      email: "joe@example.com",
    });
  });

  it("is not undone by a later event, a read, or a replay", async () => {
    const seq = await storeEvent(database.db, "customer.created", customer);
    await applyBatch(applyDeps(database.db), [seq]);
    await fill();
    await erase("customer-1", "--yes");
    await apply(database.db, ...observations(at(3_600)));
    await replayEvents(database.db, [seq]);
    await applyBatch(applyDeps(database.db), [seq]);
    const late = await storeEvent(database.db, "customer.updated", {
      ...customer,
      updated_at: at(7_200),
    });
    await applyBatch(applyDeps(database.db), [late]);
    await database.db("inbox.receipts").where({ seq: late }).update({ raw: null });
    const after = await everything();
    for (const secret of secrets) expect(after).not.toContain(secret);
    expect(await rowOf(database.db, "customers", "customer-1")).toMatchObject({
      email: "[redacted]",
      source_updated_at: new Date(at(7_200)),
    });
  });

  it("is equal to what the service still shows, so that no run finds a difference", async () => {
    await fill();
    await erase("customer-1", "--yes");
    const states = observations().flatMap((each) => {
      const decoded = decode(each);
      return decoded.ok ? decoded.states : [];
    });
    expect(await compareStates(database.db, states)).toEqual([]);
  });

  it("takes of an order that moved what it showed while it was the person's, and nothing of what it shows since", async () => {
    const moved = {
      ...order,
      customer_id: "customer-2",
      description: "for Joe",
      updated_at: at(60),
    };
    await fill();
    await apply(database.db, seen("order", { ...moved, metadata: { for: "Joe" } }, 960));
    await erase("customer-1", "--yes");
    const states = await database.db("mirror.versions").where({ resource: "order" }).orderBy("seq");
    expect(states.map(({ data }) => (data as { description: string }).description)).toEqual(["[redacted]", "for Joe"]);
    expect(await rowOf(database.db, "orders", "order-1")).toMatchObject({
      description: "for Joe",
      data: { metadata: { for: "Joe" } },
    });
    // The sale is still the person's.
    const sold = await rowOf(database.db, "transactions", "sale-1");
    expect(JSON.stringify(sold)).not.toMatch(/Jane/);
  });

  it("finds bodies that write the person's id in escapes, or name an object or an address alone", async () => {
    await fill();
    const escaped = Array.from("customer-1")
      .map((each) => `\\u00${each.charCodeAt(0).toString(16)}`)
      .join("");
    const bodies = [
      `{"type":"order.created","data":{"object":{"id":"o-9","customer_id":"${escaped}","note":"Jane"}}}`,
      '{"type":"note.added","data":{"object":{"order_id":"order-1","note":"Jane"}}}',
      '{"type":"mail.sent","data":{"object":{"to":"JANE@example.com","customer_id": null,"note":"Jane"}}}',
      '{"type":"sms.sent","data":{"object":{"to":"+1 555 0100","note":"Jane"}}}',
    ];
    const seqs: number[] = [];
    for (const body of bodies) seqs.push(await storeRow(database.db, { raw: Buffer.from(body) }));
    const other = '{"type":"mail.sent","data":{"object":{"to":"joe@example.com","note":"Joe \\u00e4"}}}';
    const untouched = await storeRow(database.db, { raw: Buffer.from(other) });
    await erase("customer-1", "--yes");
    const raws = await database.db<{ raw: Buffer }>("inbox.receipts").whereIn("seq", seqs).pluck("raw");
    expect(raws.join("\n")).not.toMatch(/jane/i);
    expect(raws).toHaveLength(4);
    expect(await database.db("inbox.receipts").where({ seq: untouched }).pluck("raw")).toEqual([Buffer.from(other)]);
  });

  it("leaves nothing of a later event either that cannot be applied", async () => {
    await fill();
    await erase("customer-1", "--yes");
    const heal = await poisonOrder(database.db, "order-1");
    const seq = await storeEvent(database.db, "order.updated", { ...order, updated_at: at(90) });
    await applyBatch(applyDeps(database.db), [seq]);
    await heal();
    expect((await progressOf(database.db, seq)).state).toBe("failed");
    expect(await everything()).not.toContain("Jane");
  });

  it("is no reason to fail on bytes that the database refuses", async () => {
    await fill();
    await erase("customer-1", "--yes");
    const bodies = [
      Buffer.from("no JSON \u0000 a@\u0000b customer-1\u0000 Jane customer-1"),
      Buffer.from('{"type":"mail.sent","data":{"object":{"to":"a@b\\u0000 \\ud800@x","id":"\\u0000"}}}'),
    ];
    for (const raw of bodies) {
      const seq = await storeRow(database.db, { raw });
      await applyBatch(applyDeps(database.db), [seq]);
      expect((await progressOf(database.db, seq)).state).toMatch(/^(dead|ignored)$/);
    }
    expect(await everything()).not.toContain("Jane");
  });

  it("does not take somebody for the person who registers with the same address later", async () => {
    await fill();
    await erase("customer-1", "--yes");
    const again = sampleCustomer({
      id: "customer-2",
      email: "Jane@example.com",
      first_name: "Janet",
    });
    await applyBatch(applyDeps(database.db), [await storeEvent(database.db, "customer.created", again)]);
    const mail = await storeEvent(database.db, "mail.sent", {
      to: "jane@example.com",
      text: "Hi!",
    });
    await applyBatch(applyDeps(database.db), [mail]);
    expect(await rowOf(database.db, "customers", "customer-2")).toMatchObject({
      email: "Jane@example.com",
      first_name: "Janet",
    });
    const [raw] = await database.db("inbox.receipts").where({ seq: mail }).pluck<Buffer[]>("raw");
    expect(raw?.toString("utf8")).toContain("Hi!");
  });

  it("keeps addresses as hashes alone, which nobody can make without this database's key", async () => {
    await fill();
    await erase("customer-1", "--yes");
    const { rows } = await database.db.raw<{ rows: { plain: string; keyed: string }[] }>(
      `select count(*) filter (where hash = sha256('jane@example.com')) as plain, count(*) as keyed
       from mirror.erased_contacts where customer_id = 'customer-1'`,
    );
    expect(rows).toEqual([{ plain: "0", keyed: "2" }]);
  });

  it("waits for a writer that began before it", async () => {
    await fill();
    const writer = await database.db.transaction();
    await writer.raw("select 1 from mirror.erasures");
    const erased = erase("customer-1", "--yes");
    await applySnapshots(writer, [seen("customer", { ...customer, first_name: "Janet", updated_at: at(60) }, 960)]);
    await writer.commit();
    expect((await erased).error).toBeNull();
    expect(await everything()).not.toContain("Janet");
  });

  it("is in the record from its first step on, also where it was killed and is completed later", async () => {
    const { db } = database;
    await emptyTables(db, ["people.audit"]);
    await fill();
    const seq = await storeEvent(db, "customer.updated", customer);
    const trx = await db.transaction();
    const args = ["customers", "erase", "customer-1", "--by", "ada", "--yes"];
    const program = runTallyhook(args, { DATABASE_URL: database.url });
    try {
      await trx("inbox.progress").where({ seq }).forUpdate();
      const { code } = await Promise.race([untilWaiting(db).then(() => ({ code: null })), program.exited]);
      expect(code, program.output()).toBeNull();
    } finally {
      await program.kill();
      await trx.rollback();
    }
    const acts = async () =>
      (await readAudit(db, { subject: { kind: "customer" }, limit: 9 })).map(({ actor, action }) => [actor, action]);
    expect(await acts()).toEqual([["ada", "erasure.begun"]]);
    expect((await erase("customer-1", "--yes", "--by", "bob")).error).toBeNull();
    expect(await acts()).toEqual([
      ["bob", "customer.erased"],
      ["bob", "erasure.begun"],
      ["ada", "erasure.begun"],
    ]);
  });

  it("is audited, each time, in a log that cannot be changed", async () => {
    await fill();
    await erase("customer-1", "--yes", "--by", "ada", "--reason", "asked to");
    await erase("customer-1", "--yes", "--by", "bob");
    const log = await database.db("mirror.erasure_log").orderBy("id");
    expect(log.slice(-2)).toMatchObject([
      { customer_id: "customer-1", erased_by: "ada", reason: "asked to", counts: { customers: 1 } },
      { customer_id: "customer-1", erased_by: "bob", reason: null },
    ]);
    const acts = await readAudit(database.db, { action: "customer.erased", limit: 2 });
    expect(acts).toMatchObject([
      { actor: "bob", via: "command line", subject: { kind: "customer", id: "customer-1" } },
      { actor: "ada", after: { customers: 1 } },
    ]);
    expect(JSON.stringify(acts)).not.toContain("asked to");
    await expect(database.db("mirror.erasure_log").delete()).rejects.toThrow("append-only");
    await expect(database.db("mirror.versions").delete()).rejects.toThrow("append-only");
  });

  it("does nothing unasked without --yes, and knows when there is nobody", async () => {
    await fill();
    expect(String((await erase("customer-1")).error)).toContain("Add --yes");
    expect(String((await erase("customer-9", "--yes")).error)).toContain(
      "Neither the mirror nor a stored event has a customer",
    );
    expect(await everything()).toContain("Jane");
  });

  it("says that the service still shows the person", async () => {
    await fill();
    expect((await erase("customer-1", "--yes")).err).toContain("Delete it there as well");
    await apply(database.db, seen("customer", { ...customer, deleted: true, updated_at: at(50) }, 990));
    expect((await erase("customer-1", "--yes")).err).not.toContain("Delete it there");
  });

  describe("the feed of an erased customer", () => {
    const changes = () => database.db("feed.changes").orderBy("seq");
    const erasures = async () => (await changes()).filter(({ kind }) => kind === "customer.erased");

    beforeEach(async () => {
      await apply(
        database.db,
        shown("customer", customer, at(0)),
        shown("order", order, at(0)),
        shown("transaction", sale, at(0)),
        shown("subscription", subscription, at(0)),
      );
    });

    it("names nobody, and tells of the erasure once for ever", async () => {
      await erase("customer-1", "--yes");
      await erase("customer-1", "--yes");
      const told = await changes();
      expect(told.length).toBeGreaterThan(4);
      const text = JSON.stringify([told, await database.db("feed.facts")]);
      for (const secret of secrets) expect(text).not.toContain(secret);
      expect(await erasures()).toMatchObject([
        { resource: "customer", id: "customer-1", cause: "erasure", is_superseded: false },
      ]);
      expect(told.at(-1)?.kind, "it comes last").toBe("customer.erased");
    });

    it("leads each change that named a state to the redacted one, and to no hash of what was erased", async () => {
      const former = (await changes()).map(({ state_hash: hash }) => hash as string | null);
      await erase("customer-1", "--yes");
      const { rows } = await database.db.raw<{
        rows: { id: string; hash: string; data: unknown }[];
      }>(
        `select c.id, c.state_hash as hash, v.data from feed.changes c
         left join mirror.versions v on v.resource = c.state_group and v.id = c.id
           and v.source_updated_at = c.state_at and v.content_hash = c.state_hash
         where c.state_hash is not null order by c.seq`,
      );
      expect(rows.length).toBe(former.filter((hash) => hash !== null).length);
      expect(rows.filter(({ data }) => data === null)).toEqual([]);
      const ofCustomer = rows.filter(({ id }) => id === "customer-1");
      expect(ofCustomer.length).toBeGreaterThan(0);
      for (const { hash } of ofCustomer) expect(former).not.toContain(hash);
    });

    it("leaves no hash of what was erased in what waits for handlers, which are given the redacted states", async () => {
      const { db } = database;
      await emptyTables(db, ["dispatch.handlers", "dispatch.runs"]);
      const source = feedSource({ name: "mails", kinds: null, includeImport: true });
      await registerRecipient(db, { name: "mails", from: "beginning" }, source);
      await planRuns(db, "mails", source);
      await db("feed.changes").where({ resource: "order" }).delete();
      const waiting = async () => (await db("dispatch.runs").orderBy("seq").select({ item: "change" })).map(changeOf);
      const former = (await waiting()).flatMap(({ state }) => state?.hash ?? []);
      await erase("customer-1", "--yes");
      const changed = await waiting();
      const read = await readObjects(db, changed);
      for (const secret of secrets) expect(JSON.stringify(read)).not.toContain(secret);
      const ofCustomer = changed.filter(({ resource }) => resource === "customer");
      expect(ofCustomer.length).toBeGreaterThan(0);
      for (const { state } of ofCustomer) {
        expect(state).not.toBeNull();
        expect(former).not.toContain(state?.hash);
      }
      const dropped = changed.filter(({ resource }) => resource === "order");
      expect(dropped.map(({ state }) => state)).toEqual(dropped.map(() => null));
    });

    it("tells nothing of an erasure that failed", async () => {
      await database.db.raw(
        "alter table mirror.customers add constraint fails check (email <> '[redacted]') not valid",
      );
      try {
        expect((await erase("customer-1", "--yes")).error).not.toBeNull();
        expect(await erasures()).toEqual([]);
      } finally {
        await database.db.raw("alter table mirror.customers drop constraint fails");
      }
      await erase("customer-1", "--yes");
      expect(await erasures()).toHaveLength(1);
    });
  });
});
