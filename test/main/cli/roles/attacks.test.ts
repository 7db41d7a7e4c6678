import type pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { RoleName } from "../../../../src/app/rights.ts";
import { errorCode } from "../../../../src/platform/postgres/errors.ts";
import { recordFindings } from "../../../../src/parts/reconcile/findings/findings.ts";
import { defaultAccounts } from "../../../../src/parts/reports/base/account-map.ts";
import { closeMonth } from "../../../../src/parts/reports/close/close-month.ts";
import { verifyCloses } from "../../../../src/parts/reports/close/verify.ts";
import { coverAll } from "../../../reports/coverage.ts";
import { letTimePass } from "../../../reports/sandbox-history.ts";
import { mirrorSales } from "../../../reports/shop.ts";
import { storeChange } from "../../../feed/stored-changes.ts";
import { type DatabaseRoles, makeDatabaseRoles } from "../../../support/database-roles.ts";
import { withServer } from "../../../support/server-commands.ts";
import { untilWaiting } from "../../../support/until-waiting.ts";
import { useTestDatabase } from "../../../support/use-database.ts";

// What a process that was taken over tries by SQL, under its role.

const database = useTestDatabase();
const timeZone = "UTC";
let roles: DatabaseRoles;

beforeAll(async () => {
  roles = await makeDatabaseRoles(database.directUrl);
  const { db } = database;
  await mirrorSales(db, [
    { nth: 1, at: "2025-05-10T10:00:00Z", amount: 1000 },
    { nth: 2, at: "2025-06-02T10:00:00Z", amount: 70 },
  ]);
  await coverAll(db, "2025-07-01T00:00:00Z");
  await letTimePass(db);
});
afterAll(() => roles?.drop());

/** Runs statements in one transaction of a role; returns the code of the error, or "done". */
const tried = (role: RoleName, ...statements: string[]): Promise<string> =>
  withServer(roles.urlOf(role), async (client) => {
    try {
      await client.query("begin");
      for (const sql of statements) await client.query(sql);
      await client.query("commit");
      return "done";
    } catch (error) {
      return errorCode(error) ?? String(error);
    }
  });

const refusedRight = "42501";
const refusedByRule = "23001";

describe("a finding", () => {
  const object = "order-1";
  let finding = "";

  beforeEach(async () => {
    const { db } = database;
    await db.raw("truncate reconcile.findings cascade");
    await recordFindings(db, { run: null, seenAt: new Date("2025-05-12T00:00:00Z") }, [
      {
        key: `mismatch:order:${object}`,
        class: "mismatch",
        identity: null,
        severity: "critical",
        resource: "order",
        objectId: object,
        differences: [],
        amountAtRiskMinor: 500n,
        currency: "usd",
        cause: null,
        evidence: {},
      },
    ]);
    finding = (await db("reconcile.findings").pluck<string[]>("id"))[0] ?? "";
  });

  const verdict = async () =>
    (
      await database.db.raw<{ rows: { verdict: string }[] }>(
        "select verdict from reports.verdict('2025-05-01', '2025-06-01')",
      )
    ).rows[0]?.verdict;
  const state = async () => (await database.db("reconcile.findings").pluck("state"))[0] as string;
  const heal = (id: string) =>
    `insert into mirror.heals (resource, id, healed_by, reason, after_sha256, changed_columns)
     values ('order', '${id}', 'x', 'x', '', '{}')`;
  const healFindings = (heals: string) =>
    `select reconcile.heal_findings(${heals}, array['mismatch:order:${object}'], now())`;

  test.each<[RoleName, string]>([
    ["dashboard", "update reconcile.findings set state = 'healed', healed_at = now()"],
    ["dashboard", "update reconcile.findings set severity = 'warning'"],
    ["reports", "update reconcile.findings set state = 'healed', healed_at = now()"],
    [
      "dashboard",
      `insert into reconcile.finding_versions (finding, content)
       select id, to_jsonb(f) || '{"state": "healed"}' from reconcile.findings f`,
    ],
    [
      "worker",
      `insert into reconcile.finding_versions (finding, content, recorded_at)
       select id, to_jsonb(f) || '{"state": "healed"}', '2025-06-01' from reconcile.findings f`,
    ],
    ["reports", "select reconcile.acknowledge_finding(1, 'x', now(), null, 'x', 'dashboard', null)"],
    ["receiver", "select reconcile.acknowledge_finding(1, 'x', now(), null, 'x', 'dashboard', null)"],
  ])("%s turns no FAIL into PASS: %s", async (role, sql) => {
    expect(await verdict()).toBe("FAIL");
    expect(await tried(role, sql)).toBe(refusedRight);
    expect([await state(), await verdict()]).toEqual(["open", "FAIL"]);
  });

  test("is acknowledged by the dashboard's role with a record, or not at all", async () => {
    const acknowledge = (note: string) =>
      `select reconcile.acknowledge_finding(${finding}, '${note}', now(), null, 'Ann', 'dashboard', null)`;
    expect(await tried("dashboard", acknowledge(" "))).toBe("23514");
    expect(await tried("dashboard", acknowledge("known"))).toBe("done");
    expect(await state()).toBe("acknowledged");
    expect(
      await database.db("people.audit").where({ subject_id: finding }).select("actor", "action", "subject_id"),
    ).toEqual([{ actor: "Ann", action: "finding.acknowledged", subject_id: finding }]);
  });

  test("is healed by the dashboard's role with its object in that transaction, or not at all", async () => {
    expect(await tried("dashboard", healFindings("1"))).toBe(refusedByRule);
    const last = "(select max(seq) from mirror.heals)";
    // Another object's heal heals nothing of this one, and neither does that of an earlier transaction.
    expect(await tried("dashboard", heal("order-2"), healFindings(last))).toBe("done");
    expect(await tried("dashboard", healFindings(last))).toBe(refusedByRule);
    expect(await state()).toBe("open");
    expect(await tried("dashboard", heal(object), healFindings(last))).toBe("done");
    expect(await state()).toBe("healed");
    expect(await database.db("mirror.heals").where({ id: object })).toHaveLength(1);
  });
});

describe("what the dashboard's role changes for a person", () => {
  const act = (kind: string, id: string, after = "null") =>
    `insert into people.audit (actor, via, action, subject_kind, subject_id, after)
     values ('Ann', 'dashboard', 'thing.changed', '${kind}', '${id}', ${after})`;
  /** By what the act has to be about; null: by any act. */
  const changes: readonly [sql: string, kind: string | null, id: string][] = [
    ["update people.accounts set roles = '{admin}' where email = 'eve@example.com'", "account", "eve@example.com"],
    ["update people.accounts set password_hash = 'x'", "account", "eve@example.com"],
    ["insert into people.accounts (email, roles) values ('new@example.com', '{admin}')", "account", "new@example.com"],
    [
      `insert into people.sessions (token_hash, account_id, account_version, method, address, user_agent, began_at,
         last_seen_at) select 'x', id, version, 'password', '', '', now(), now() from people.accounts`,
      null,
      "",
    ],
    ["insert into receiver.secrets (id, ciphertext, key_id) values ('own', 'x', 'x')", "secret", "own"],
    ["update receiver.secrets set not_after = now(), retired_at = now()", "secret", "there"],
    ["update reconcile.endpoints set url = 'https://elsewhere.example'", "endpoint", "we_1"],
    ["update reconcile.run_orders set outcome = 'withdrawn', ended_at = now()", "run-order", "1"],
    ["update dispatch.handlers set paused_at = now(), paused_by = 'person', pause_reason = 'own'", "handler", "mails"],
    ["update dispatch.runs set attempts = 0", "handler", "mails"],
    ["delete from dispatch.runs", "handler", "mails"],
    ["update alerts.silences set ends_at = 'infinity'", "silence", "1"],
    ["update alerts.alerts set state = 'resolved', resolved_at = now()", null, ""],
    ["update alerts.outbox set state = 'dropped'", null, ""],
    ["delete from alerts.digest_items", null, ""],
    ["delete from alerts.storm_items", null, ""],
  ];

  beforeAll(async () => {
    await database.db.raw(`
      insert into people.accounts (email, roles) values ('eve@example.com', '{viewer}');
      insert into receiver.secrets (id, ciphertext, key_id) values ('there', 'x', 'x');
      insert into reconcile.endpoints (id, url) values ('we_1', 'https://shop.example');
      insert into reconcile.run_orders (run_key, kind, report_only, ordered_by) values ('own', 'full', false, 'Ann');
      insert into dispatch.handlers (name, position) values ('mails', 0);
      insert into dispatch.runs (handler, seq, resource, id, kind, change, is_first)
        values ('mails', 1, 'order', 'x', 'x', '{}', true);
      insert into alerts.silences (rule, up_to_severity, ends_at, began_by) values ('x', 'info', now() + interval '1 hour', 'Ann');
      insert into alerts.alerts (key, rule, severity, stage, opened_at, updated_at, found_by)
        values ('x', 'x', 'info', 'x', now(), now(), 'sweep'), ('y', 'x', 'info', 'x', now(), now(), 'sweep');
      insert into alerts.outbox (channel, alert_id, stage, action, message) values ('email', 1, 'x', 'trigger', '{}');
      insert into alerts.digest_items (channel, alert_id, stage) values ('email', 1, 'x');
      insert into alerts.storm_items (channel, alert_id, stage, storm_id, told_how)
        values ('email', 1, 'x', 2, 'alone')`);
  });

  test.each(changes)("is done with the record of an act about it, or not at all: %s", async (sql, kind, id) => {
    const undone = (...before: string[]) =>
      withServer(roles.urlOf("dashboard"), async (client) => {
        await client.query("begin");
        for (const each of [...before, sql]) await client.query(each);
        // As the commit asks, so that the next case finds everything as it was.
        const asked = client.query("set constraints all immediate");
        return asked.then(
          () => "done",
          (error: unknown) => errorCode(error),
        );
      });
    expect(await tried("dashboard", sql)).toBe(refusedByRule);
    expect(await undone()).toBe(refusedByRule);
    if (kind === null) {
      expect(await undone(act("page", "/"))).toBe("done");
    } else {
      expect(await undone(act(kind, "another"))).toBe(refusedByRule);
      expect(await undone(act("page", id))).toBe(refusedByRule);
      expect(await undone(act(kind, id))).toBe("done");
      expect(await undone(act("page", "/", `'{"${kind}": "${id}"}'`))).toBe("done");
    }
  });

  test("is not covered by an act of an earlier transaction, or by one that is taken back", async () => {
    const pause = "update dispatch.handlers set paused_at = now(), paused_by = 'person', pause_reason = 'own'";
    const record = act("handler", "mails");
    expect(await tried("dashboard", record)).toBe("done");
    expect(await tried("dashboard", pause)).toBe(refusedByRule);
    const takenBack = ["savepoint s", record, "set constraints all immediate", "rollback to s"];
    expect(await tried("dashboard", pause, ...takenBack)).toBe(refusedByRule);
    expect(await database.db("dispatch.handlers").pluck("paused_at")).toEqual([null]);
  });

  test("has the name of the login in its record, which no role chooses", async () => {
    const insert = (columns: string, values: string) =>
      `insert into people.audit (actor, via, action${columns}) values ('Ann', 'dashboard', 'own.login'${values})`;
    for (const role of ["worker", "reports", "dashboard"] as const) {
      expect(await tried(role, insert(", login", ", 'other'"))).toBe(refusedRight);
      expect(await tried(role, insert("", ""))).toBe("done");
    }
    expect(await database.db("people.audit").where({ action: "own.login" }).orderBy("id").pluck("login")).toEqual(
      (["worker", "reports", "dashboard"] as const).map(roles.nameOf),
    );
  });
});

describe("what was known at an earlier time", () => {
  test.each<[RoleName, string]>([
    ["receiver", "insert into inbox.receipts (received_at) values ('2020-01-01')"],
    ["worker", "update inbox.receipts set received_at = '2020-01-01'"],
    ["worker", "update inbox.receipts set event_id = 'x'"],
    ["worker", "insert into feed.changes (recorded_at) values ('2020-01-01')"],
    ["worker", "insert into alerts.history (recorded_at) values ('2020-01-01')"],
    ["worker", "insert into reconcile.run_states (run) values (1)"],
    ["worker", "insert into reconcile.runs (started_at) values ('2020-01-01')"],
    ["dashboard", "insert into mirror.heals (healed_at) values ('2020-01-01')"],
    ["dashboard", "insert into mirror.unbelieved (recorded_at) values ('2020-01-01')"],
    ["dashboard", "insert into mirror.unbelieved (heal) values (1)"],
    ["dashboard", "insert into reports.preparation_ends (ended_at) values ('2020-01-01')"],
    ["dashboard", "insert into reports.preparations (prepared_at) values ('2020-01-01')"],
    ["dashboard", "insert into people.audit (at) values ('2020-01-01')"],
    ["dashboard", "update inbox.progress set seq = 9"],
    ["dashboard", "update dispatch.runs set change = '{}'"],
    ["dashboard", "update dispatch.handlers set position = 9"],
    ["dashboard", "update receiver.secrets set last_used_at = null"],
    ["dashboard", "select setval('feed.change_numbers', 1)"],
    ["receiver", "select setval('inbox.event_numbers', 1)"],
    ["reports", "select reports.check_close()"],
    ["worker", "select token_hash from people.sessions"],
    ["worker", "select address from people.sessions"],
    ["worker", "select account_id from people.sign_in_links"],
    ["dashboard", "set session_replication_role = replica"],
    ["dashboard", "set local role postgres"],
  ])("is not for %s to say: %s", async (role, sql) => {
    expect(["42501", "22023"]).toContain(await tried(role, sql));
  });

  test("a run that a role writes as ended long ago ended when it was written", async () => {
    const { db } = database;
    const sql = `insert into reconcile.runs (run_key, kind, t0, state, finished_at)
                 values ('forged', 'nightly', '2025-05-01', 'complete', '2025-05-01')`;
    expect(await tried("worker", sql)).toBe("done");
    const { rows } = await db.raw<{ rows: { is_now: boolean }[] }>(
      `select s.recorded_at > now() - interval '1 hour' as is_now
       from reconcile.run_states s join reconcile.runs r on r.id = s.run where r.run_key = 'forged'`,
    );
    expect(rows).toEqual([{ is_now: true }]);
    await db.raw(
      `delete from reconcile.run_states using reconcile.runs r where r.id = run and r.run_key = 'forged';
       delete from reconcile.runs where run_key = 'forged'`,
    );
  });

  test.each(["null", "9", "(select max(seq) from mirror.heals)"])(
    "no state leaves the history by a heal of another object or time (%s)",
    async (heal) => {
      const states = () => database.db("mirror.versions").count("* as n").first();
      const before = await states();
      const overrule = `select mirror.overrule(array_agg(resource), array_agg(id), array_agg('-infinity'::timestamptz),
                          '-infinity', now(), ${heal}) from mirror.versions`;
      const other = `insert into mirror.heals (resource, id, healed_by, reason, after_sha256, changed_columns)
                     values ('order', 'other', 'x', 'x', '', '{}')`;
      expect(await tried("dashboard", other, overrule)).toBe(refusedByRule);
      expect(await states()).toEqual(before);
    },
  );
});

test.each<RoleName>(["bi", "reports", "receiver", "worker", "dashboard"])(
  "%s stores nothing beside the tables",
  async (role) => {
    for (const sql of [
      "select lo_from_bytea(0, 'x')",
      "select lo_create(0)",
      "create table public.own ()",
      "create schema own",
      "create temporary table own ()",
    ]) {
      const isAllowed = sql.includes("temporary") && !["bi", "reports"].includes(role);
      expect([sql, await tried(role, "set transaction read write", sql)]).toEqual([
        sql,
        isAllowed ? "done" : refusedRight,
      ]);
    }
  },
);

describe("a month that is closed", () => {
  const close = (month: string) =>
    closeMonth(database.db, {
      month,
      timeZone,
      accounts: defaultAccounts,
      reason: "a test",
      by: "Ann",
    });
  const movement = (close: number) =>
    `insert into reports.closed_movements (close, movement, kind, object_id, at, booked_at, is_late, currency, amount)
     values (${close}, 'own', 'sale', 'own', now(), now(), false, 'usd', 1)`;
  const sealed = (month: string, more: Record<string, string> = {}) => {
    const next = `'${month}-01'::date + interval '1 month'`;
    const values: Record<string, string> = {
      id: "1 + coalesce((select max(id) from reports.closes), 0)",
      month: `'${month}-01'`,
      time_zone: "'UTC'",
      from_at: `'${month}-01'::timestamp at time zone 'UTC'`,
      to_at: `(${next}) at time zone 'UTC'`,
      as_of: "now()",
      verdict: "'FAIL'",
      reason: "'own'",
      closed_by: "'own'",
      previous_sha256: "(select sha256 from reports.closes order by month desc limit 1)",
      manifest: "'x'",
      sha256: "encode(sha256('x'), 'hex')",
      sha256_covers: "'everything'",
      ...more,
    };
    return `insert into reports.closes (${Object.keys(values).join(", ")}) values (${Object.values(values).join(", ")})`;
  };

  test.each<[string, string]>([
    ["of a month to come", sealed("2031-01")],
    ["without the clock", sealed("2025-05", { as_of: "'2031-01-01'" })],
    ["of an earlier time", sealed("2025-05", { closed_at: "'2025-06-01'" })],
    ["before the month is over", sealed("2025-05", { as_of: "'2025-05-02'" })],
    ["under another number", sealed("2025-05", { id: "9" })],
    ["with other bounds", sealed("2025-05", { from_at: "'2025-01-01'" })],
    ["with another hash", sealed("2025-05", { sha256: "'0'" })],
    ["without a manifest", sealed("2025-05", { sha256_covers: "'rows'", manifest: "null" })],
    ["of a proof that there is not", sealed("2026-01", { verdict: "'PASS'" })],
  ])("is not one %s", async (_, sql) => {
    for (const role of ["reports", "dashboard"] as const) {
      expect(await tried(role, sql)).toBe(refusedByRule);
    }
    expect(await database.db("reports.closes")).toEqual([]);
  });

  const inTransactionOf = <T>(
    isolation: "read committed" | "repeatable read",
    run: (client: pg.Client) => Promise<T>,
  ): Promise<T> =>
    withServer(roles.urlOf("reports"), async (client) => {
      await client.query(`begin isolation level ${isolation}; select from reports.closes`);
      return run(client);
    });

  const outcome = (result: Promise<unknown>): Promise<string> =>
    result.then(
      () => "done",
      (error: unknown) => errorCode(error) ?? String(error),
    );

  test.each([
    ["read committed", "2025-05", 1],
    ["repeatable read", "2025-06", 2],
  ] as const)("never grows by a transaction that was open meanwhile (%s)", async (isolation, month, id) => {
    await letTimePass(database.db);
    const closing = await inTransactionOf(isolation, async (client) => {
      await client.query(movement(id));
      const closed = close(month);
      await untilWaiting(database.db);
      // Nobody adds to a close that they do not seal.
      expect(await outcome(client.query("commit"))).toBe("23503");
      return closed;
    });
    expect(closing.month).toBe(month);
    // One that has looked before the close and adds after it.
    expect((await verifyCloses(database.db)).problems).toEqual([]);
    const { closes } = await verifyCloses(database.db);
    expect(closes.flatMap(({ problems }) => problems)).toEqual([]);
  });

  test("never grows by a transaction that has looked before it was closed", async () => {
    await letTimePass(database.db);
    await inTransactionOf("repeatable read", async (client) => {
      await close("2025-07");
      expect(await outcome(client.query(movement(3)))).toBe("40001");
    });
    await inTransactionOf("read committed", async (client) => {
      expect(await outcome(client.query(movement(3)))).toBe(refusedByRule);
    });
  });

  test("is followed by the next one alone, in its chain", async () => {
    for (const sql of [
      sealed("2025-09"),
      sealed("2025-07"),
      sealed("2025-08", { time_zone: "'Europe/Berlin'" }),
      sealed("2025-08", { previous_sha256: "'0'" }),
    ]) {
      expect(await tried("reports", sql)).toBe(refusedByRule);
    }
    expect(await database.db("reports.closes").max("id as id").first()).toEqual({ id: "3" });
  });
});

test.each<[RoleName, string]>([
  ["receiver", refusedRight],
  ["worker", "done"],
  ["reports", refusedRight],
  ["dashboard", refusedRight],
  ["bi", refusedRight],
])("a page of the feed, taken and moved on by the role of %s: %s", async (role, outcome) => {
  const { db } = database;
  await db.raw("insert into feed.consumers (name, position) values ('shop', 0) on conflict do nothing");
  const seq = await storeChange(db, { recordedAt: new Date() });
  const take = "select feed.next_changes('shop', 10000)";
  expect(await tried(role, take, `select feed.done('shop', ${seq})`)).toBe(outcome);
  // feed.done() takes the word of a setting for what was handed out, but never a right that the caller lacks.
  const forge = `set local tallyhook.feed_pages = '{"shop": ${seq + 1}}'`;
  expect(await tried(role, forge, `select feed.done('shop', ${seq + 1})`)).toBe(outcome);
});
