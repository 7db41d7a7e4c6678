import type { Knex } from "knex";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Handler, defineHandler } from "../../src/parts/delivery/dispatch/define-handler.ts";
import { eventually } from "../support/eventually.ts";
import { useTestDatabase } from "../support/use-database.ts";
import {
  type TestDispatch,
  applyAs,
  emptyDispatch,
  openDispatch,
  orderAt,
  untilHandled,
  untilRegistered,
} from "./dispatch-stand.ts";

const database = useTestDatabase();
let dispatch: TestDispatch;
beforeEach(() => emptyDispatch(database.db));
afterEach(() => dispatch.close());

async function open(handler: Handler): Promise<void> {
  dispatch = openDispatch(database.url, [handler]);
  await untilRegistered(database.db, handler.name);
}

const untilDead = (handlers: number) =>
  eventually("all are dead", async () => {
    const dead = await database.db("dispatch.runs").where({ state: "dead" }).orderBy("seq");
    return dead.length === handlers ? dead : null;
  });

const trap = (): never => {
  throw new Error("a trap");
};
const allTraps = { get: trap, has: trap, getPrototypeOf: trap, ownKeys: trap };

test("whatever a handler throws is a failure with a name, and nothing else", async () => {
  const named = new Error("of another name");
  named.name = "Zero\0Byte";
  const thrown: [unknown, string][] = [
    [undefined, "ThrewNoError"],
    [null, "ThrewNoError"],
    ["a text", "ThrewNoError"],
    [Symbol("a symbol"), "ThrewNoError"],
    [new Proxy({}, allTraps), "ThrewNoError"],
    [new Proxy(new Error("behind a proxy"), allTraps), "ThrewNoError"],
    [new Proxy(new Error("behind a proxy"), { get: trap }), "unknown error"],
    [Object.defineProperty(new Error("x"), "message", { get: trap }), "Error"],
    [Object.defineProperty(new Error("x"), "name", { get: trap }), "unknown error"],
    [{ [Symbol.for("tallyhook.retry-later")]: true, afterMs: "soon" }, "RetryLater"],
    [
      Object.defineProperty({ [Symbol.for("tallyhook.retry-later")]: true }, "afterMs", {
        get: trap,
      }),
      "RetryLater",
    ],
    [named, "Zero\ufffdByte"],
  ];
  await open(
    defineHandler({
      name: "thrower",
      on: ["order.created"],
      attempts: 1,
      run: ({ order }) => Promise.reject(thrown[Number(order.id.slice(6))]?.[0] as Error),
    }),
  );
  await applyAs(database.db, "event:1", ...thrown.map((_, n) => orderAt(`order-${n}`, 1)));
  const dead = await untilDead(thrown.length);
  const errors = new Map(dead.map(({ id, error }) => [id, error as string]));
  expect(thrown.map((_, n) => errors.get(`order-${n}`))).toEqual(thrown.map(([, error]) => error));
});

test("a transaction that is over takes no statement: not after the deadline, and not after run has returned", async () => {
  const { db } = database;
  await db.raw("create schema own; create table own.stale (id text)");
  const refused: string[] = [];
  let released = (): void => {};
  const overdue = new Promise<void>((resolve) => (released = resolve));
  const write = (trx: Knex, id: string) =>
    trx("own.stale")
      .insert({ id })
      .then(
        () => refused.push(`${id} was written`),
        (error: unknown) => refused.push(`${id}: ${(error as Error).message}`),
      );
  let late: Promise<unknown> = Promise.resolve();
  await open(
    defineHandler({
      name: "stale",
      on: ["order.created"],
      transactional: true,
      deadlineMs: 200,
      attempts: 1,
      async run({ order, db: trx }) {
        if (order.id === "order-returns") {
          late = overdue.then(() => write(trx, order.id));
          return;
        }
        const nested = await (trx as Knex.Transaction).transaction();
        await overdue;
        await write(trx, order.id);
        await write(nested, `${order.id}, nested`);
      },
    }),
  );
  await applyAs(db, "event:1", orderAt("order-hangs", 1), orderAt("order-returns", 1));
  expect(await untilDead(1)).toMatchObject([{ id: "order-hangs", error: "DeadlineExceeded" }]);
  await untilHandled(db, { dead: 1 });
  expect(dispatch.overdue()).toEqual(["stale"]);
  released();
  await late;
  await eventually("the call has ended", () => dispatch.overdue().length === 0);
  const over = "Transaction query already complete, run with DEBUG=knex:tx for more info";
  expect(new Set(refused)).toEqual(
    new Set(["order-hangs", "order-hangs, nested", "order-returns"].map((id) => `${id}: ${over}`)),
  );
  expect(await db("own.stale")).toEqual([]);
});

const waysToCommit: [string, (trx: Knex) => PromiseLike<unknown>][] = [
  ["by Knex", (trx) => (trx as Knex.Transaction).commit()],
  ["by SQL", (trx) => trx.raw("commit")],
  ["by SQL, and begins another one", (trx) => trx.raw("commit; begin")],
  ["by SQL, with a chain", (trx) => trx.raw("commit and chain")],
];

test("a handler that commits its transaction itself is dead at once, and not run again", async () => {
  const { db } = database;
  await db.raw("create schema if not exists own; create table own.committed (id text)");
  const cases = waysToCommit.flatMap((way) => [true, false].map((throws) => ({ way, throws })));
  await open(
    defineHandler({
      name: "commits",
      on: ["order.created"],
      transactional: true,
      async run({ order, db: trx }) {
        await trx("own.committed").insert({ id: order.id });
        const { way, throws } = cases[Number(order.id.slice(6))] ?? expect.fail();
        await way[1](trx);
        if (throws) throw new Error("after the commit");
      },
    }),
  );
  await applyAs(db, "event:1", ...cases.map((_, n) => orderAt(`order-${n}`, 1)));
  const dead = await untilDead(cases.length);
  for (const { id, attempts, error } of dead) {
    const { way, throws } = cases[Number(id.slice(6))] ?? expect.fail();
    const commits = `${way[0]}, ${throws ? "throws" : "returns"}`;
    expect({ attempts, error }, commits).toEqual({
      attempts: 1,
      error: expect.stringContaining("ended its transaction itself") as string,
    });
  }
  const committed = await db("own.committed").orderBy("id").pluck("id");
  expect(committed).toEqual(cases.map((_, n) => `order-${n}`));
});

test("a transactional handler that only fails in its SQL is tried again", async () => {
  const { db } = database;
  let calls = 0;
  await open(
    defineHandler({
      name: "fails-in-sql",
      on: ["order.created"],
      transactional: true,
      async run({ db: trx }) {
        calls += 1;
        if (calls === 1) await trx.raw("select 1 / 0");
      },
    }),
  );
  await applyAs(db, "event:1", orderAt("order-1", 1));
  await untilHandled(db);
  expect(calls).toBe(2);
});
