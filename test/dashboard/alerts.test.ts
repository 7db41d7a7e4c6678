import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { cardOf } from "../../src/parts/alerts/pages/summary.ts";
import { clear, raise } from "../../src/parts/alerts/raise-conditions.ts";
import { beginSilence } from "../../src/parts/alerts/silences.ts";
import { findAlertByKey } from "../../src/parts/alerts/store.ts";
import type { Condition } from "../../src/parts/alerts/timeline.ts";
import type { Role } from "../../src/app/people/permissions.ts";
import { hostile } from "../alerts/messages.ts";
import { emptyAlerts, testAlertContext } from "../alerts/test-alert-context.ts";
import { storeRow } from "../inbox/stored-events.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { type DashboardStand, openDashboard, send, signedIn } from "./dashboard-stand.ts";
import { emptyTables } from "../support/empty-tables.ts";

const database = useTestDatabase();
let dashboard: DashboardStand;
const cookies = new Map<Role, string>();

beforeAll(async () => {
  // To a new deployment home shows the first steps only.
  await storeRow(database.db, { raw: Buffer.from("{}"), eventId: "evt_1" });
  dashboard = await openDashboard(database);
  for (const role of ["viewer", "support", "operator"] as const) {
    cookies.set(role, (await signedIn(database.db, [role])).cookie);
  }
});
afterAll(() => dashboard.close());
beforeEach(async () => {
  await emptyAlerts(database.db);
  await emptyTables(database.db, ["people.cases", "people.notes"]);
});

const alertContext = testAlertContext();

/** Raises an alert about an order, as a rule does; its number. */
async function raised(key: string, given: Partial<Condition> = {}): Promise<number> {
  const subject = {
    orderId: `order of ${key}`,
    subscriptionId: null,
    transactionId: null,
    customerId: null,
  };
  await database.db.transaction((trx) =>
    raise(
      trx,
      alertContext,
      [
        {
          key,
          rule: "handler_dead",
          severity: "error",
          title: `Title of ${key}`,
          advice: `Advice on ${key}`,
          facts: [{ label: "Customer", value: `j…@e….com of ${key}` }],
          subject,
          at: new Date(),
          ...given,
        },
      ],
      "sweep",
    ),
  );
  return (await findAlertByKey(database.db, key)) ?? 0;
}

const page = async (path: string, role: Role = "support") => {
  const answer = await send(`${dashboard.url}${path}`, { cookie: cookies.get(role) ?? "" });
  return { status: answer.status, text: await answer.text() };
};
const textOf = async (path: string, role?: Role) => (await page(path, role)).text;

/** What the form that leads to an address says it was decided on. */
function versionIn(text: string, action: string): string {
  const [, form = ""] = text.split(`action="${action}"`);
  const [, version] = /name="decided-on" value="([^"]*)"/.exec(form) ?? [];
  if (version === undefined) throw new Error(`there is no form for ${action}`);
  return version;
}

/** Sends the form of that address from a page, as who sees the page now. */
const submit = async (from: string, action: string, fields: Record<string, string> = {}, role: Role = "support") => {
  const form = { "decided-on": versionIn(await textOf(from, role), action), ...fields };
  return send(`${dashboard.url}${action}`, { cookie: cookies.get(role) ?? "", form });
};

const acts = () => database.db("people.audit").orderBy("id").pluck<string[]>("action");
const numbersIn = (text: string) =>
  [...text.matchAll(/<td class="number"[^>]*><a href="\/alerts\/(\d+)">/g)].map(([, id]) => Number(id));

describe("the list", () => {
  test("has what is not resolved, the newest first, and filters by state, severity, rule and object", async () => {
    const a = await raised("a");
    const b = await raised("b", { severity: "critical", rule: "handler_paused" });
    const c = await raised("c");
    await database.db.transaction((trx) => {
      const end = { title: "Over", advice: "" };
      return clear(trx, alertContext, [{ key: "c", end, at: new Date() }], "sweep");
    });
    await beginSilence(database.db, {
      of: { key: "a" },
      upTo: "error",
      hours: 1,
      by: "Anna",
      reason: null,
    });
    const shown = async (query: string) => numbersIn(await textOf(`/alerts${query}`));
    expect(await shown("")).toEqual([b, a]);
    expect(await shown("?state=resolved")).toEqual([c]);
    expect(await shown("?state=all")).toEqual([c, b, a]);
    expect(await shown("?state=silenced")).toEqual([a]);
    expect(await shown("?state=acknowledged")).toEqual([]);
    expect(await shown("?severity=critical")).toEqual([b]);
    expect(await shown("?rule=handler_dead")).toEqual([a]);
    expect(await shown("?object=order+of+b")).toEqual([b]);
    expect(await shown(`?before=${b}`)).toEqual([a]);
    const text = await textOf("/alerts?severity=critical");
    expect(text).toContain("2 alerts are not resolved: 1 critical, 1 error.");
    expect(text).toContain("node src/bin/tallyhook.js alerts list --severity critical");
    expect(await textOf("/alerts")).toContain("1 silence is in force.");
  });

  test("goes on page by page", async () => {
    for (let n = 0; n < 52; n++) await raised(`k${n}`);
    const text = await textOf("/alerts?rule=handler_dead");
    expect(numbersIn(text)).toHaveLength(50);
    const [, older = ""] = /rel="next" href="([^"]+)"/.exec(text) ?? [];
    expect(older).toBe("/alerts?rule=handler_dead&amp;before=3");
    expect(numbersIn(await textOf(older.replace("&amp;", "&")))).toEqual([2, 1]);
  });

  test("shows a viewer rule, severity, object and times, and no text", async () => {
    await raised("a");
    const text = await textOf("/alerts", "viewer");
    expect(text).toContain("handler_dead");
    expect(text).toContain('href="/objects/order/order%20of%20a"');
    expect(text).not.toContain("Title of a");
    expect(await textOf("/alerts", "operator")).toContain("Title of a");
  });
});

describe("an alert's page", () => {
  test("tells its life and its messages; what they say to who may see people, and that is recorded", async () => {
    const id = await raised("a");
    const before = (await acts()).length;
    const seen = await textOf(`/alerts/${id}`);
    expect(seen).toContain("<h1>Title of a</h1>");
    expect(seen).toContain('What to do: <bdi class="outside">Advice on a</bdi>');
    expect(seen).toContain("j…@e….com of a");
    expect(seen).toContain("raised");
    expect((await acts()).slice(before)).toEqual(["alert.read"]);
    const byOperator = await textOf(`/alerts/${id}`, "operator");
    expect(byOperator).toContain("Title of a");
    expect(byOperator).not.toContain("j…@e….com");
    const byViewer = await textOf(`/alerts/${id}`, "viewer");
    expect(byViewer).toContain(`<h1>Alert ${id}: handler_dead</h1>`);
    for (const hidden of ["Title of a", "Advice on a", "j…@e….com", "<button>Acknowledge"]) {
      expect(byViewer).not.toContain(hidden);
    }
    expect((await acts()).slice(before)).toEqual(["alert.read"]);
  });

  test("of none is not there", async () => {
    for (const id of ["99", "x", "9".repeat(20)]) {
      expect((await page(`/alerts/${id}`)).status).toBe(404);
    }
  });

  test("shows what others wrote as text, in one frame, however long and whatever is in it", async () => {
    const id = await raised("a", {
      title: hostile,
      advice: hostile,
      facts: [{ label: "Customer", value: hostile }],
    });
    await database
      .db("alerts.outbox")
      .update({ state: "failed", attempts: 3, last_error: hostile.replaceAll("\u0000", "") });
    for (const path of [`/alerts/${id}`, "/alerts"]) {
      const text = await textOf(path);
      expect(text).not.toContain("<script>alert");
      expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
      expect(text.length).toBeLessThan(60_000);
      for (const [, inside] of text.matchAll(/<bdi class="outside">([^<]*)<\/bdi>/g)) {
        expect(inside?.length).toBeLessThan(6_000);
      }
      expect(text.replaceAll(/<bdi[^>]*>[^<]*<\/bdi>/g, "")).not.toContain("\u202e");
    }
  });
});

describe("acknowledging", () => {
  test("is done once, by the person who is signed in, with its record", async () => {
    const id = await raised("a");
    const before = (await acts()).length;
    const answer = await submit(`/alerts/${id}`, `/alerts/${id}/acknowledge`, { note: "on it" }, "operator");
    expect([answer.status, answer.headers.get("location")]).toEqual([303, `/alerts/${id}`]);
    expect((await acts()).slice(before)).toEqual(["alert.acknowledged"]);
    const row = await database.db("alerts.alerts").where({ id }).first();
    expect(row).toMatchObject({ state: "acknowledged", acknowledged_note: "on it" });
    expect(row.acknowledged_by).toMatch(/@example\.com$/);
    expect(await textOf(`/alerts/${id}`, "operator")).not.toContain("on it");
    expect(await textOf(`/alerts/${id}`)).toContain("on it");
  });

  test("of what has changed since the page was opened does nothing, and shows what it is now", async () => {
    const id = await raised("a", { measures: { n: 1 } });
    const version = versionIn(await textOf(`/alerts/${id}`), `/alerts/${id}/acknowledge`);
    await raised("a", { severity: "critical", measures: { n: 5 } });
    for (const decided of [version, "", "open error opened"]) {
      const cookie = cookies.get("support") ?? "";
      const form = { "decided-on": decided };
      const answer = await send(`${dashboard.url}/alerts/${id}/acknowledge`, { cookie, form });
      expect(answer.status).toBe(409);
      expect(await answer.text()).toMatch(/critical.*grown:1/s);
    }
    expect(await database.db("alerts.alerts").pluck("state")).toEqual(["open"]);
  });
});

test("an alert by another writing of its number is not there: it would have another case", async () => {
  const id = await raised("a");
  const cookie = cookies.get("support") ?? "";
  const asked = [
    await send(`${dashboard.url}/alerts/0${id}`, { cookie }),
    await send(`${dashboard.url}/alerts/0${id}/note`, { cookie, form: { text: "unseen" } }),
  ];
  expect(asked.map(({ status }) => status)).toEqual([404, 404]);
});

test("somebody takes it, and writes what only those read who may see people", async () => {
  const id = await raised("a");
  const at = `/alerts/${id}`;
  expect((await submit(at, `${at}/snooze`, { days: "1" })).status).toBe(303);
  const form = { text: "Jane called" };
  await send(`${dashboard.url}${at}/note`, { cookie: cookies.get("support") ?? "", form });
  expect(await textOf(at)).toContain("Jane called");
  expect(await textOf(at, "operator")).not.toContain("Jane called");
  const cookie = cookies.get("support") ?? "";
  expect((await send(`${dashboard.url}/alerts/99/note`, { cookie, form })).status).toBe(404);
});

describe("sending again", () => {
  const giveUp = () => database.db("alerts.outbox").update({ state: "failed", attempts: 9 });

  test("queues all that was given up, or one message, with its record", async () => {
    const id = await raised("a");
    await giveUp();
    const before = (await acts()).length;
    expect((await submit(`/alerts/${id}`, `/alerts/${id}/resend`)).status).toBe(303);
    expect(await database.db("alerts.outbox").pluck("state")).toEqual(["pending"]);
    await giveUp();
    const [message] = await database.db("alerts.outbox").pluck<string[]>("id");
    const action = `/alerts/${id}/messages/${message}/resend`;
    expect((await submit(`/alerts/${id}`, action)).status).toBe(303);
    expect(await database.db("alerts.outbox").pluck("state")).toEqual(["pending"]);
    expect((await acts()).slice(before).filter((act) => act !== "alert.read")).toEqual([
      "alert.resent",
      "alert.resent",
    ]);
  });

  test("of what somebody has queued meanwhile is refused", async () => {
    const id = await raised("a");
    await giveUp();
    const text = await textOf(`/alerts/${id}`);
    const [message] = await database.db("alerts.outbox").pluck<string[]>("id");
    await database.db("alerts.outbox").update({ state: "pending", attempts: 0 });
    for (const action of [`/alerts/${id}/resend`, `/alerts/${id}/messages/${message}/resend`]) {
      const form = { "decided-on": versionIn(text, action) };
      const cookie = cookies.get("support") ?? "";
      expect((await send(`${dashboard.url}${action}`, { cookie, form })).status).toBe(409);
    }
    const cookie = cookies.get("support") ?? "";
    const none = `${dashboard.url}/alerts/${id}/messages/999/resend`;
    expect((await send(none, { cookie, form: {} })).status).toBe(404);
  });
});

describe("silencing", () => {
  const silences = () => database.db("alerts.silences").orderBy("id").select("key", "rule", "up_to_severity", "reason");

  test("holds messages of one alert or of its rule, and the alert stays on the list and on home", async () => {
    const id = await raised("a", { severity: "critical" });
    const before = (await acts()).length;
    const fields = { hours: "4", "up-to": "critical", reason: "deploy" };
    const action = `/alerts/${id}/silence`;
    await submit(`/alerts/${id}`, action, { ...fields }, "operator");
    await submit(`/alerts/${id}`, action, { ...fields, "whole-rule": "yes" }, "operator");
    expect(await silences()).toEqual([
      { key: "a", rule: null, up_to_severity: "critical", reason: "deploy" },
      { key: null, rule: "handler_dead", up_to_severity: "critical", reason: "deploy" },
    ]);
    expect((await acts()).slice(before)).toEqual(["silence.begun", "silence.begun"]);
    expect(numbersIn(await textOf("/alerts"))).toEqual([id]);
    expect(await textOf("/alerts")).toContain("silenced");
    const home = await textOf("/", "viewer");
    expect(home).toContain("1 critical alert is open and not acknowledged.");
    expect(home).toContain("1, 1 silenced");
  });

  test("by a double click begins once, so that ending it ends it", async () => {
    const id = await raised("a");
    const action = `/alerts/${id}/silence`;
    const version = versionIn(await textOf(`/alerts/${id}`), action);
    const form = { "decided-on": version, hours: "1", "up-to": "error" };
    const cookie = cookies.get("support") ?? "";
    const clicks = [1, 2].map(() => send(`${dashboard.url}${action}`, { cookie, form }));
    const statuses = (await Promise.all(clicks)).map(({ status }) => status);
    expect(statuses.toSorted((a, b) => a - b)).toEqual([303, 409]);
    expect(await silences()).toHaveLength(1);
  });

  test("of a rule by a double click begins once as well", async () => {
    const version = versionIn(await textOf("/alerts/silences"), "/alerts/silences");
    const form = { "decided-on": version, rule: "decline", hours: "1", "up-to": "error" };
    const cookie = cookies.get("support") ?? "";
    const clicks = [1, 2, 3].map(() => send(`${dashboard.url}/alerts/silences`, { cookie, form }));
    const statuses = (await Promise.all(clicks)).map(({ status }) => status);
    expect(statuses.toSorted((a, b) => a - b)).toEqual([303, 409, 409]);
    expect(await silences()).toHaveLength(1);
  });

  test("of a rule can begin without an alert, and ends early with its record", async () => {
    const fields = { rule: "decline", hours: "1", "up-to": "error" };
    expect((await submit("/alerts/silences", "/alerts/silences", fields)).status).toBe(303);
    const before = (await acts()).length;
    const end = "/alerts/silences/1/end";
    const text = await textOf("/alerts/silences");
    expect((await submit("/alerts/silences", end)).status).toBe(303);
    expect((await acts()).slice(before)).toEqual(["silence.ended"]);
    const form = { "decided-on": versionIn(text, end) };
    const cookie = cookies.get("support") ?? "";
    const again = await send(`${dashboard.url}${end}`, { cookie, form });
    expect(again.status).toBe(409);
    expect(await again.text()).toContain("It ended:");
  });

  test("a rule is refused where somebody has silenced something meanwhile", async () => {
    const version = versionIn(await textOf("/alerts/silences"), "/alerts/silences");
    await beginSilence(database.db, {
      of: { rule: "decline" },
      upTo: "error",
      hours: 1,
      by: "Anna",
      reason: null,
    });
    const form = { "decided-on": version, rule: "decline", hours: "1", "up-to": "error" };
    const cookie = cookies.get("support") ?? "";
    expect((await send(`${dashboard.url}/alerts/silences`, { cookie, form })).status).toBe(409);
  });

  test.each([
    ["for no time", { hours: "0" }],
    ["for longer than a month", { hours: "721" }],
    ["up to no severity", { "up-to": "loud" }],
    ["for a reason of two lines", { reason: "a\nb" }],
    ["for a long reason", { reason: "x".repeat(201) }],
  ])("%s is refused", async (_, wrong) => {
    const id = await raised("a");
    const fields = { hours: "1", "up-to": "error", ...wrong };
    expect((await submit(`/alerts/${id}`, `/alerts/${id}/silence`, fields)).status).toBe(400);
    expect(await silences()).toEqual([]);
  });

  test("shows its reason to who may read what people write, which is recorded, and to nobody else", async () => {
    await raised("a");
    await beginSilence(database.db, {
      of: { key: "a" },
      upTo: "error",
      hours: 1,
      by: "Anna",
      reason: "secret reason",
    });
    for (const path of ["/alerts/silences", "/alerts/1"]) {
      const before = (await acts()).length;
      for (const role of ["operator", "viewer"] as const) {
        const text = await textOf(path, role);
        expect(text).not.toContain("secret reason");
        expect(text).toContain("reading them requires the permission person:read");
      }
      expect(await acts()).toHaveLength(before);
      expect(await textOf(path, "support")).toContain("secret reason");
      expect(await acts()).toHaveLength(before + 1);
    }
  });
});

describe("the card of home", () => {
  test("is good where nothing is open", () => {
    expect(cardOf([], { late: 0, silences: 0 })).toMatchObject({ tone: "good", reasons: [] });
  });

  test("names what nobody has acknowledged and messages that nobody sends", () => {
    const counts = [{ severity: "error" as const, alerts: 3, open: 2, silenced: 0 }];
    expect(cardOf(counts, { late: 1, silences: 2 })).toMatchObject({
      tone: "bad",
      headline: "3 not resolved",
      reasons: [
        { text: "2 alerts of severity error are open and not acknowledged.", path: "/alerts?severity=error" },
        {
          text: "1 message of an alert is more than five minutes late: no worker sends, or a channel is down.",
          path: "/docs/runbooks#tallyhookalertsnotsent",
        },
      ],
    });
  });

  test("does not call for what is acknowledged or only a warning", () => {
    const counts = [
      { severity: "critical" as const, alerts: 1, open: 0, silenced: 0 },
      { severity: "warning" as const, alerts: 9, open: 9, silenced: 0 },
    ];
    expect(cardOf(counts, { late: 0, silences: 0 })).toMatchObject({ tone: "good", reasons: [] });
  });
});

test("messages that nobody sends are counted on home", async () => {
  await raised("a");
  await database.db("alerts.outbox").update({ due_at: new Date(Date.now() - 600_000) });
  expect(await textOf("/")).toContain("1 message of an alert is more than five minutes late");
});
