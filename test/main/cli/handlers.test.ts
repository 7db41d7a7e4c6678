import { beforeEach, describe, expect, test } from "vitest";
import type { OpenRunRow } from "../../../src/parts/delivery/dispatch/open-runs.ts";
import { readRemains } from "../../../src/parts/delivery/dispatch/manage-handlers.ts";
import {
  type ListedRecipient,
  recipientList,
  recipientPage,
} from "../../../src/parts/delivery/cli/recipient-tables.ts";
import { handlerWords, registerHandlers } from "../../../src/parts/delivery/handlers/command.ts";
import { emptyDispatch, registerHandler } from "../../dispatch/dispatch-stand.ts";
import { storeRun } from "../../dispatch/stored-runs.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { runCommand } from "./command-line.ts";

const database = useTestDatabase();
beforeEach(async () => {
  await emptyDispatch(database.db);
  await registerHandler(database.db, { name: "receipts", from: "now" });
});

const run = (args: string[], answer?: string) =>
  runCommand(registerHandlers, ["handlers", ...args], {
    env: database.environment,
    ...(answer === undefined ? {} : { terminal: true, stdin: `${answer}\n` }),
  });

describe("tallyhook handlers remove", () => {
  test("says what is thrown away and asks; without a yes nothing is done", async () => {
    const { db } = database;
    await storeRun(db, { seq: 1, id: "order-1", state: "dead" });
    await storeRun(db, { seq: 2, id: "order-1", isFirst: false });
    const declined = await run(["remove", "receipts"], "n");
    expect(declined.err).toContain("2 changes that it has not done (1 dead) are thrown away.");
    expect(String(declined.error)).toContain("nothing was done");
    expect(await readRemains(db, "receipts")).not.toBeNull();
    expect((await run(["remove", "receipts"], "y")).error).toBeNull();
    expect(await readRemains(db, "receipts")).toBeNull();
  });

  test("refuses while a process runs a change of it", async () => {
    const { db } = database;
    const claimedUntil = new Date(Date.now() + 60_000);
    await storeRun(db, { seq: 1, id: "order-1", claimedUntil });
    const { error } = await run(["remove", "receipts", "--yes"]);
    expect(error).toMatchObject({ exitCode: 64 });
    expect(String(error)).toContain(`until ${claimedUntil.toISOString()} at most`);
    expect(await readRemains(db, "receipts")).not.toBeNull();
  });
});

test("a change that runs just now is not retried, and why is said", async () => {
  const claimedUntil = new Date(Date.now() + 60_000);
  await storeRun(database.db, { seq: 1, id: "order-1", claimedUntil });
  const { error } = await run(["retry", "receipts", "--change", "1"]);
  expect(error).toMatchObject({ refusal: "hindered", exitCode: 64 });
  expect(String(error)).toContain("receipts runs number 1 now");
});

describe("the tables", () => {
  const row: ListedRecipient = {
    name: "receipts",
    position: 1,
    behind: 0,
    paused_by: null,
    paused_at: null,
    pause_reason: null,
    waiting: 0,
    dead: 0,
    done: 0,
    failed: 0,
    postponed: 0,
    last_done_at: null,
    last_failed_at: null,
    isDefined: true,
  };
  const openRun: OpenRunRow = {
    seq: 1,
    resource: "order",
    id: "order-1",
    kind: "order.paid",
    state: "dead",
    attempts: 12,
    postponed: 0,
    due_at: null,
    is_running: false,
    error: null,
    failed_at: null,
    holds_up: 0,
  };

  test("show what was not counted to its end as more", () => {
    const many = { ...row, waiting: 100_000, dead: 100_000 };
    expect(recipientList(handlerWords, [many], [])).toContain("100000+ dead changes hold up");
    expect(recipientPage(handlerWords, many, [{ ...openRun, holds_up: 1_000 }])).toMatch(/waiting +100000\+[^]*1000\+/);
  });

  test("say what to do about errors that the handler did not throw", () => {
    const page = recipientPage(handlerWords, row, [{ ...openRun, error: "ObjectNotSeen" }, openRun]);
    expect(page).toMatch(
      /ObjectNotSeen: the mirror has not seen the object yet\..*then retry\..* skip the change\.\n$/,
    );
    expect(recipientPage(handlerWords, row, [{ ...openRun, error: "TypeError" }])).not.toContain("TypeError: ");
  });

  test("let no text speak to the terminal", () => {
    const hostile = {
      ...row,
      name: "a\u001b[31m",
      paused_by: "person",
      pause_reason: "b\u001b[2J",
    } as const;
    const texts = [
      recipientList(handlerWords, [hostile], []),
      recipientPage(handlerWords, hostile, [{ ...openRun, id: "c\u0007", kind: "d\u0007" }]),
    ];
    expect(texts.join("")).not.toMatch(/[\u0007\u001b]/);
  });
});
