import { expect, test } from "vitest";
import { refusal } from "./hostile-service.ts";
import { fingerprint } from "./reconcile-stand.ts";
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
      expect(result.error).toMatch(
        /another account.*none of the objects.*order.*SVC_API_KEY.*DATABASE_URL/s,
      );
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
  expect((await stand.run()).error).toMatch(
    /another account: it is acct_2, and the mirror is of acct_1/,
  );
  account("acct_1");
  expect((await stand.run()).complete).toBe(true);
  service.quirks = {};
});
