import { expect, test } from "vitest";
import { createAccount } from "../../src/app/people/accounts.ts";
import { forgetEnded } from "../../src/app/retention.ts";
import { beginSession } from "../../src/app/people/sessions.ts";
import { createSignInLink } from "../../src/app/people/sign-in-links.ts";
import { useTestDatabase } from "../support/use-database.ts";

const database = useTestDatabase();
const now = new Date("2026-11-22T12:00:00Z");
const before = (hours: number) => new Date(now.getTime() - hours * 3_600_000);

/** An account each: a session that begins removes what is over of its own account. */
async function account(name: string): Promise<number> {
  const { id } = await database.db.transaction((trx) =>
    createAccount(trx, { email: `${name}@example.com`, roles: [], passwordHash: null }),
  );
  return id;
}

async function session(name: string, beganAt: Date, lastSeenAt = beganAt): Promise<void> {
  const accountId = await account(name);
  const from = { method: "link", address: "127.0.0.1", userAgent: "test", replaces: null } as const;
  await database.db.transaction((trx) => beginSession(trx, { accountId, ...from, now: beganAt }));
  await database.db("people.sessions").where({ account_id: accountId }).update({ last_seen_at: lastSeenAt });
}

test("sessions, links and failed attempts that are over are removed, and the others stay", async () => {
  const { db } = database;
  await session("fresh", before(11));
  await session("idle", before(12));
  await session("old", before(7 * 24), before(1));
  const late = await account("late");
  await db.transaction((trx) => createSignInLink(trx, late, before(1)));
  const soon = await account("soon");
  await db("people.sign_in_links").insert({
    token_hash: Buffer.from("soon"),
    account_id: soon,
    expires_at: new Date(now.getTime() + 1),
  });
  await db("people.attempts").insert([
    { key: "over", points: 1, expire: now.getTime() },
    { key: "counts", points: 1, expire: now.getTime() + 1 },
  ]);
  expect(await forgetEnded(db, now)).toEqual({ sessions: 2, links: 1, attempts: 1 });
  const left = await db("people.sessions as s").join("people.accounts as a", "a.id", "s.account_id").pluck("email");
  expect(left).toEqual(["fresh@example.com"]);
  expect((await db("people.sign_in_links").pluck("account_id")).map(Number)).toEqual([soon]);
  expect(await db("people.attempts").pluck("key")).toEqual(["counts"]);
});
