import { expect, test } from "vitest";
import { applyHeal, proposeHeal } from "../../src/parts/reconcile/heal-object.ts";
import { type Answer, refusal, startHostileService } from "./hostile-service.ts";
import { createReconcileStand, fingerprint } from "./reconcile-stand.ts";
import { useWalkedService } from "./use-walked-service.ts";

const walked = useWalkedService();

/** The service as another merchant's key shows it: as many objects, all of them others. */
function showAnotherAccount(): () => void {
  const { service } = walked;
  const own = service.objects;
  const others = (list: string) =>
    (own[list] ?? []).map((object) => ({
      ...object,
      id: `other-${object.id}`,
      order_id: `other-${String(object["order_id"])}`,
    }));
  service.objects = Object.fromEntries(Object.keys(own).map((list) => [list, others(list)]));
  return () => (service.objects = own);
}

test.each(["import", "full", "nightly"] as const)(
  "another merchant's key is refused before anything is written (%s), and its own goes on as if nothing had been",
  async (kind) => {
    const { stand, service } = walked;
    const before = await fingerprint(stand);
    const back = showAnotherAccount();
    const asked = service.requests.length;
    try {
      const result = await stand.run({ kind });
      expect(result).toMatchObject({ complete: false, totals: { rows: {} } });
      expect(result.error).toMatch(/another account.*none of the objects.*order.*SVC_API_KEY.*DATABASE_URL/s);
      expect(service.requests.slice(asked).map(({ list }) => list)).toEqual(["orders", "account"]);
      expect(await fingerprint(stand)).toBe(before);
    } finally {
      back();
    }
    expect(await stand.run({ kind })).toMatchObject({
      complete: true,
      totals: { healed: {}, left: {} },
    });
  },
);

test("a key of the account is taken though its oldest order cannot be read", async () => {
  const { stand, service } = walked;
  service.quirks = {
    object: (object) => (object?.id === "order-0000" ? refusal(500, "internal_error") : undefined),
  };
  try {
    expect((await stand.run()).complete).toBe(true);
  } finally {
    service.quirks = {};
  }
});

test("where the service names its account the name is kept at the first run, and another one is refused", async () => {
  const { stand, service } = walked;
  const account = (id: string) => {
    service.quirks = { instead: ({ list }) => (list === "account" ? { body: { id } } : undefined) };
  };
  account("acct_1");
  expect((await stand.run()).complete).toBe(true);
  account("acct_2");
  expect((await stand.run()).error).toMatch(/another account: it is acct_2, and the mirror is of acct_1/);
  account("acct_1");
  expect((await stand.run()).complete).toBe(true);
  service.quirks = {};
});

const keptAccounts = () => walked.stand.database.db("reconcile.account").pluck("id");
const accountAnd = (id: string, object: () => Answer) => ({
  instead: ({ list }: { list: string }) => (list === "account" ? { body: { id } } : undefined),
  object,
});

test.each([
  ["403", () => refusal(403, "insufficient_permissions")],
  ["500", () => refusal(500, "internal_error")],
  ["a page of a proxy", () => ({ body: "<html>" })],
  ["another object", () => ({ body: { id: "another" } })],
] as const)(
  "an account whose objects are all answered with %s is neither taken nor kept, and the message says what to do",
  async (_, answer) => {
    const { stand, service } = walked;
    await stand.database.db("reconcile.account").delete();
    const before = await fingerprint(stand);
    service.quirks = accountAnd("acct_of_another", answer);
    try {
      const result = await stand.run();
      expect(result).toMatchObject({ complete: false, totals: { rows: {} } });
      expect(result.error).toMatch(
        /not known whether.*order order-0000: .*Run again once the service answers.*permission/s,
      );
      expect(await keptAccounts()).toEqual([]);
      expect(await fingerprint(stand)).toBe(before);
    } finally {
      service.quirks = {};
    }
  },
  120_000,
);

test("an account that knows some objects not, and does not answer for the others, is another one", async () => {
  const { stand, service } = walked;
  await stand.database.db("reconcile.account").delete();
  service.quirks = {
    object: (object) =>
      object?.id === "order-0000" ? refusal(404, "resource_not_found") : refusal(403, "insufficient_permissions"),
  };
  try {
    expect((await stand.run()).error).toMatch(/another account.*order order-0000/);
  } finally {
    service.quirks = {};
  }
});

test("a wrong key on an empty mirror leaves no account behind that would refuse the right one", async () => {
  const service = await startHostileService(5);
  const stand = await createReconcileStand(service.url);
  const { db } = stand.database;
  const account = (id: string) => {
    service.quirks = { instead: ({ list }) => (list === "account" ? { body: { id } } : undefined) };
  };
  const own = service.objects;
  try {
    account("acct_wrong");
    service.objects = { orders: [], customers: [], transactions: [], subscriptions: [] };
    expect((await stand.run({ kind: "import" })).error).toBeNull();
    // As an earlier version kept it.
    await db("reconcile.account").insert({ id: "acct_wrong" });
    account("acct_right");
    service.objects = own;
    expect(await stand.run({ kind: "import" })).toMatchObject({ complete: true, error: null });
    expect(await db("mirror.orders").count("* as n").first()).toEqual({ n: "5" });
    expect((await stand.run()).complete).toBe(true);
    expect(await db("reconcile.account").pluck("id")).toEqual(["acct_right"]);
  } finally {
    await stand.close();
    await service.close();
  }
});

test("heal writes no object of another account, nor of one that cannot be told", async () => {
  const { stand, service } = walked;
  const object = { resource: "customer", id: "customer-1" } as const;
  const before = await fingerprint(stand);
  const own = service.objects;
  // Another merchant's, with an object of the same id.
  service.objects = { ...own, orders: [], transactions: [] };
  try {
    await expect(proposeHeal(stand.deps, object)).rejects.toMatchObject({
      message: expect.stringMatching(/another account.*SVC_API_KEY/),
      exitCode: 2,
    });
    service.objects = own;
    service.quirks = {
      object: (_, list) => (list === "customers" ? undefined : refusal(500, "internal_error")),
    };
    await expect(proposeHeal(stand.deps, object)).rejects.toThrow("not known whether");
  } finally {
    service.objects = own;
    service.quirks = {};
  }
  expect(await fingerprint(stand)).toBe(before);
  const proposal = await proposeHeal(stand.deps, object);
  expect(await applyHeal(stand.deps, proposal, { by: "ann", reason: "a test" })).toBe(true);
});

test("a run that is refused takes nothing from one that can still be taken up", async () => {
  const { db } = walked.stand.database;
  const [run] = await db("reconcile.runs")
    .insert({ run_key: "interrupted", kind: "nightly", t0: new Date(), state: "incomplete" })
    .returning<{ id: string }[]>("id");
  await db("reconcile.coverage").insert({
    run: run?.id,
    slice: 0,
    step: "window",
    resource: "order",
    path: "/orders",
    filter: "{}",
    is_closed: true,
    reason: "a test",
  });
  await db("reconcile.seen").insert({ run: run?.id, resource: "order", id: "order-0001" });
  const seen = () => db("reconcile.seen").pluck("id");
  const back = showAnotherAccount();
  try {
    expect((await walked.stand.run()).error).toContain("another account");
    expect(await seen()).toEqual(["order-0001"]);
  } finally {
    back();
  }
  await walked.stand.run({ kind: "nightly" });
  expect(await seen()).toEqual([]);
});
