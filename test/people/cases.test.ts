import { beforeAll, describe, expect, test } from "vitest";
import { createAccount } from "../../src/app/people/accounts.ts";
import { readAudit } from "../../src/app/people/audit.ts";
import {
  addNote,
  changeCase,
  changesSince,
  readCase,
  readNotes,
  removeNotes,
  untouched,
} from "../../src/app/people/cases.ts";
import { useTestDatabase } from "../support/use-database.ts";

const database = useTestDatabase();
const now = new Date("2026-11-22T12:00:00Z");
let actor: { accountId: number; name: string; via: "dashboard"; address: string };

beforeAll(async () => {
  const { id } = await database.db.transaction((trx) =>
    createAccount(trx, { email: "ada@example.com", roles: ["support"], passwordHash: null }),
  );
  actor = { accountId: id, name: "ada@example.com", via: "dashboard", address: "127.0.0.1" };
});

const change = (id: string, to: Parameters<typeof changeCase>[3], decidedOn: number) =>
  database.db.transaction((trx) => changeCase(trx, actor, { kind: "dunning", id }, to, { decidedOn, now }));
const subject = (id: string) => ({ kind: "dunning", id }) as const;

describe("a case", () => {
  test("that nobody touched has nobody, rests not, and is version 0", async () => {
    expect(await readCase(database.db, subject("ord_none"))).toEqual(untouched);
  });

  test("is given to somebody, keeps that while it is put to rest, and is recorded both times", async () => {
    const until = new Date("2026-11-25T08:00:00Z");
    expect(await change("ord_1", { assignee: actor.accountId }, 0)).toBe(true);
    expect(await change("ord_1", { snoozedUntil: until }, 1)).toBe(true);
    expect(await readCase(database.db, subject("ord_1"))).toEqual({
      assignee: { id: actor.accountId, email: "ada@example.com" },
      snoozedUntil: until,
      version: 2,
    });
    const acts = await readAudit(database.db, { subject: subject("ord_1"), limit: 10 });
    expect(acts.map(({ action, actor: who }) => [action, who])).toEqual([
      ["case.changed", "ada@example.com"],
      ["case.changed", "ada@example.com"],
    ]);
  });

  test.each([0, 1])("is not changed on an earlier version, such as %i", async (decidedOn) => {
    const id = `ord_late_${decidedOn}`;
    await change(id, { assignee: actor.accountId }, 0);
    await change(id, { snoozedUntil: now }, 1);
    expect(await change(id, { assignee: null }, decidedOn)).toBe(false);
    expect(await readCase(database.db, subject(id))).toMatchObject({
      assignee: { email: "ada@example.com" },
      version: 2,
    });
  });
});

describe("what became of a case since a version", () => {
  test("is who did what, the newest first, and nothing where the version is the present one", async () => {
    const until = new Date("2026-11-25T08:00:00Z");
    await change("ord_7", { assignee: actor.accountId }, 0);
    await change("ord_7", { snoozedUntil: until }, 1);
    await change("ord_7", { assignee: null }, 2);
    const changes = await changesSince(database.db, subject("ord_7"), 1);
    expect(changes.map(({ by, before, after }) => [by, before, after])).toEqual([
      [
        "ada@example.com",
        { assignee: "ada@example.com", snoozedUntil: until },
        { assignee: null, snoozedUntil: until },
      ],
      [
        "ada@example.com",
        { assignee: "ada@example.com", snoozedUntil: null },
        { assignee: "ada@example.com", snoozedUntil: until },
      ],
    ]);
    expect(await changesSince(database.db, subject("ord_7"), 3)).toEqual([]);
    expect(await changesSince(database.db, subject("ord_none"), 0)).toEqual([]);
  });
});

describe("a note", () => {
  const note = (id: string, text: string) =>
    database.db.transaction((trx) => addNote(trx, actor, subject(id), { text, now }));

  test("stands with its author, the newest first, and the record does not repeat it", async () => {
    await note("ord_2", "called, no answer");
    await note("ord_2", "promised to pay on Friday");
    expect(await readNotes(database.db, subject("ord_2"))).toEqual([
      { at: now, author: "ada@example.com", text: "promised to pay on Friday" },
      { at: now, author: "ada@example.com", text: "called, no answer" },
    ]);
    const acts = await readAudit(database.db, { subject: subject("ord_2"), limit: 10 });
    expect(JSON.stringify(acts)).not.toContain("called");
  });

  test("that a double click sends stands there once, and may be written again later", async () => {
    await Promise.all([1, 2, 3].map(() => note("ord_twice", "called, no answer")));
    expect(await readNotes(database.db, subject("ord_twice"))).toHaveLength(1);
    expect(await readAudit(database.db, { subject: subject("ord_twice"), limit: 10 })).toHaveLength(1);
    await note("ord_once", "called, no answer");
    const later = new Date(now.getTime() + 60_000);
    await database.db.transaction((trx) =>
      addNote(trx, actor, subject("ord_twice"), { text: "called, no answer", now: later }),
    );
    expect(await readNotes(database.db, subject("ord_twice"))).toHaveLength(2);
    expect(await readNotes(database.db, subject("ord_once"))).toHaveLength(1);
  });

  test("is gone after an erasure of what it is about, and others stay", async () => {
    await note("ord_4", "about a person");
    await note("ord_5", "about another");
    await database.db.transaction((trx) => removeNotes(trx, [{ kind: "dunning", ids: ["ord_4"] }]));
    expect(await readNotes(database.db, subject("ord_4"))).toEqual([]);
    expect(await readNotes(database.db, subject("ord_5"))).toHaveLength(1);
  });

  test("is gone as well where it names the person and is about another", async () => {
    await note("ord_6", "the same household as jane@example.com");
    await note("ord_6", "nothing to do with her");
    const named = (text: string) => text.includes("jane@");
    expect(await database.db.transaction((trx) => removeNotes(trx, [], named))).toBe(1);
    expect((await readNotes(database.db, subject("ord_6"))).map(({ text }) => text)).toEqual([
      "nothing to do with her",
    ]);
  });
});
