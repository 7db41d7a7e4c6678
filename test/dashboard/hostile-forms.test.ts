import { afterAll, beforeAll, expect, test } from "vitest";
import { roleNames } from "../../src/app/people/permissions.ts";
import { paragraph, readFreeText } from "../../src/platform/free-text.ts";
import { type DashboardStand, openDashboard, send, signedIn } from "./dashboard-stand.ts";
import { useFilledDatabase } from "./filled-database.ts";
import { type FormTarget, formTargets, formsAt } from "./forms.ts";

const database = useFilledDatabase();
let dashboard: DashboardStand;
let cookie: string;
/** After one of these the rest may be refused: the sample's session can be the one that is signed in. */
const endsTheSession = new Set(["/sign-out", "/me/sessions/:id/end", "/admin/sessions/:id/end"]);

let targets: FormTarget[];

beforeAll(async () => {
  dashboard = await openDashboard(database, { service: database.service });
  ({ cookie } = await signedIn(database.db, roleNames));
  // The samples name the newest account: another than the one that changes it.
  await signedIn(database.db, ["viewer"]);
  const all = await formTargets(dashboard, database.db, cookie);
  targets = all.filter(({ path }) => !endsTheSession.has(path));
});
afterAll(() => dashboard.close());

/** What no text of a person may be. */
const refused = [
  "W".repeat(9_000),
  "a null character: \0",
  "a color of a terminal: \u001B[31mred\u0007\u0085",
  "half of a pair: \uD800",
  "\u200B\u2060\u200F",
];

/** What a text may be, and hardly any other field. */
const odd = [
  `<script>alert(1)</script>"'& \u202Egnp.eciovni\u2066 \u200F\u05D0`,
  "9".repeat(30),
  "-1",
  "1e400",
  "0000-01-01T00:00",
  "99999-12-31T23:59",
  "",
];

const isText = (name: string): boolean => /^(note|reason|text)$/.test(name);

/** Of routes that no page shows a form of, with those for signing in. */
const otherNames = ["decided-on", "email", "password", "code", "token", "next", "note", "seq"];

/** A month is prepared in seconds: what it refuses is quick. */
const isSlow = (path: string): boolean => path.endsWith("/prepare");

const lastAct = async (): Promise<unknown> => (await database.db("people.audit").max("id as max").first())?.max;

test("no form makes an error of the program, whatever is in its fields; what is refused leaves no act, and says why; a text that is taken is stored whole", async () => {
  const wrong: unknown[] = [];
  for (const { path, page, form: first } of targets) {
    let { action, fields } = first;
    const names = page === null ? [otherNames] : Object.keys(fields).map((name) => [name]);
    for (const spoiled of names) {
      for (const value of [...refused, ...(isSlow(path) ? [] : odd)]) {
        const before = await lastAct();
        const form = { ...fields, ...Object.fromEntries(spoiled.map((name) => [name, value])) };
        const answer = await send(`${dashboard.url}${action}`, { cookie, form });
        const text = await answer.text();
        const { status } = answer;
        const report = (what: string) => wrong.push([what, status, `${path} ${spoiled.join()}`, value.slice(0, 40)]);
        if (status >= 500) report("an error");
        if (answer.headers.get("location")?.startsWith("/sign-in?unsaved") === true) report("signed out");
        if (status >= 400 && before !== (await lastAct())) report("half done");
        if (status >= 400 && !/<p class="problem"[^>]*>[^<]{10}/.test(text)) report("no reason");
        if (page === null || status >= 400) continue;
        if (spoiled.some(isText)) {
          if (refused.includes(value)) report("taken");
          else if (!(await isStored(value))) report("not whole");
        }
        ({ action, fields } = (await formsAt(`${dashboard.url}${page}`, cookie)).find(
          (each) => each.action === action,
        ) ?? {
          action,
          fields,
        });
      }
    }
  }
  expect(wrong).toEqual([]);
});

/** Whether a column of what people write holds the text. */
async function isStored(typed: string): Promise<boolean> {
  const text = readFreeText(typed, paragraph);
  if (text === null) return typed === "";
  for (const [table, column] of columns) {
    if ((await database.db(table).where(column, text).first(column)) !== undefined) return true;
  }
  return false;
}

const columns = [
  ["people.notes", "text"],
  ["alerts.alerts", "acknowledged_note"],
  ["alerts.silences", "reason"],
  ["reconcile.findings", "ack_note"],
  ["mirror.heals", "reason"],
  ["dispatch.handlers", "pause_reason"],
] as const;
