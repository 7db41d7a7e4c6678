import { Command } from "commander";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { formName } from "../../src/app/dashboard/act-route.ts";
import type { DoorOfAct, Route } from "../../src/app/dashboard/route.ts";
import { doorOf } from "../../src/app/cli/act-command.ts";
import type { CliContext } from "../../src/app/cli/context.ts";
import { commandModules, registerCommands, registerModules } from "../../src/main/commands.ts";
import { loadConfig } from "../../src/app/config/config.ts";
import { pageGroups } from "../../src/main/run-dashboard.ts";
import { createRuntime } from "../../src/app/create-runtime.ts";
import type { AnyAct } from "../../src/app/people/act.ts";
import { readAudit } from "../../src/app/people/audit.ts";
import type { Field } from "../../src/app/people/fields.ts";
import { roleNames } from "../../src/app/people/permissions.ts";
import { UnreachableError } from "../../src/platform/errors.ts";
import { createLog } from "../../src/platform/log.ts";
import { type DashboardStand, openDashboard, send, signedIn } from "../dashboard/dashboard-stand.ts";
import { type FilledDatabase, openFilled } from "../dashboard/filled-database.ts";
import { type Form, formTargets } from "../dashboard/forms.ts";
import { everyRow } from "../support/everything-stored.ts";
import { runCommand } from "./cli/command-line.ts";
import { allParts } from "../../src/main/parts.ts";

/** The doors are found by their definitions: a new act is played here without being written in. */
const commands = await commandDoors();
const routes = await formDoors();
const acts = new Map([...commands, ...routes].map(({ act }) => [act.name, act]));

const person = "pat@example.com";

/** The form that a page of the filled database shows for each path; none where no page shows one. */
const forms = new Map<string, Form>();

/** Where things are refused: nothing changes in it. */
let refusing: World;
let untouched: Rows;

beforeAll(async () => {
  refusing = await openWorld();
  const { database, dashboard, cookie } = refusing;
  for (const { path, page, form } of await formTargets(dashboard, database.db, cookie)) {
    if (page !== null) forms.set(path, form);
  }
  untouched = await rowsOf(refusing);
});
afterAll(() => refusing.close());

const pairs = routes.flatMap(({ act, path }) => {
  const both = commands.filter((command) => command.act.name === act.name && canSay(command, act, path));
  return both.map((command) => ({ name: act.name, words: command.words.join(" "), path, command }));
});

test("every act that has both doors is played through both", () => {
  const played = new Set(pairs.map(({ name }) => name));
  const both = [...acts.values()].filter(
    (act) => commands.some((each) => each.act.name === act.name) && routes.some((each) => each.act.name === act.name),
  );
  expect(both.map(({ name }) => name).filter((name) => !played.has(name))).toEqual([]);
  expect(played.size).toBeGreaterThan(3);
});

describe.each(pairs)('$name by "$words" and by the form at $path', ({ name, path, command }) => {
  test("leaves the same record and the same rows", async () => {
    const [one, other] = [await openWorld(), await openWorld()];
    try {
      const typed = typedInto(path, command);
      const byForm = await throughForm(one, path, typed);
      const byCommand = await throughCommand(other, command, typed);
      expect([byForm.refusal, byCommand.refusal]).toEqual([null, null]);
      expect(byForm.acts.map(({ action }) => action)).toContain(name);
      expect(byCommand.acts).toEqual(byForm.acts);
      expect(await rowsOf(other)).toEqual(await rowsOf(one));
    } finally {
      await Promise.all([one, other].map((world) => world.close()));
    }
  });

  test("refuses what is not there in the same words", async () => {
    for (const field of paramsOf(path)) {
      if (!canBe(command.act.fields[field], absent)) continue;
      const typed = typedInto(path, command).set(field, absent);
      const byForm = await throughForm(refusing, path, typed);
      const byCommand = await throughCommand(refusing, command, typed);
      expect(byForm.status).toBe(404);
      expect(byForm.refusal).toBe(byCommand.refusal);
    }
  });

  test("has the same limits of what is typed", async () => {
    const { fields } = command.act;
    const ofForm = routeAt(path).act.fields;
    for (const [field, { longest, wanted }] of Object.entries<Field<unknown>>(fields)) {
      if (longest === undefined || paramsOf(path).includes(field) || !(field in ofForm)) continue;
      if (isGiven(path, field) || !(field in command.takes)) continue;
      const typed = typedInto(path, command).set(field, "W".repeat(longest + 1));
      const byForm = await throughForm(refusing, path, typed);
      const byCommand = await throughCommand(refusing, command, typed);
      expect(byForm.status).toBe(400);
      expect(byForm.refusal).toContain(wanted);
      expect(byCommand.refusal).toContain(wanted);
    }
  });
});

test("a note has one limit, whatever page it is written on", () => {
  const limits = routes.flatMap(({ act }) =>
    Object.entries<Field<unknown>>(act.fields).flatMap(([name, { longest }]) =>
      name === "note" || name === "text" ? [longest] : [],
    ),
  );
  expect([limits.length > 2, new Set(limits)]).toEqual([true, new Set([2_000])]);
});

test("what was refused has left nothing", async () => {
  expect(await rowsOf(refusing)).toEqual(untouched);
  const { db } = refusing.database;
  const recorded = await readAudit(db, { actor: person, limit: 1_000 });
  expect(recorded.filter(({ action }) => acts.has(action))).toEqual([]);
});

interface CommandDoor {
  act: Omit<AnyAct, "permission">;
  words: string[];
  takes: Readonly<Record<string, { flags: string }>>;
  /** Options without a value that say nothing of the act: not to ask, or what has to be said. */
  besides: string[];
}

async function commandDoors(): Promise<CommandDoor[]> {
  const program = new Command("tallyhook");
  await registerModules(program, { version: "1.2.3" } as CliContext, commandModules);
  const found: CommandDoor[] = [];
  const collect = (command: Command, words: string[]): void => {
    const door = doorOf(command);
    const besides = command.options.flatMap(({ long, mandatory, required, negate }) =>
      long === "--wait" ? [long, "1"] : long === "--yes" || negate || (mandatory && !required) ? [long ?? ""] : [],
    );
    if (door !== undefined) found.push({ ...door, words, besides });
    for (const each of command.commands) collect(each, [...words, each.name()]);
  };
  collect(program, []);
  return found;
}

async function formDoors(): Promise<(DoorOfAct & Pick<Route, "path">)[]> {
  const runtime = createRuntime(allParts, loadConfig({}), createLog({ level: "silent", name: "test" }));
  const own = {} as Parameters<typeof pageGroups>[1]["own"];
  return (await pageGroups(runtime, { own, oidc: null }))
    .flatMap((group) => group.routes)
    .flatMap(({ path, door }) => (door === undefined ? [] : [{ ...door, path }]));
}

const routeAt = (path: string) => routes.find((route) => route.path === path) as DoorOfAct;

function paramsOf(path: string): string[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = ""]) => name);
}

function isGiven(path: string, field: string): boolean {
  return routes.some((route) => route.path === path && field in route.given);
}

/** Whether a command can name what the address of a form names. Forwarding has its recipients under other names. */
function canSay({ words, takes }: CommandDoor, { fields }: CommandDoor["act"], path: string): boolean {
  const required = Object.entries<Field<unknown>>(fields).flatMap(([name, { absent }]) =>
    absent === undefined ? [name] : [],
  );
  const isSaid = (name: string) => name in takes || isGiven(path, name);
  return words[0] !== "forward" && [...paramsOf(path), ...required].every(isSaid);
}

const absent = "987654321";

/** An address that names in no proper way what it is about has its own words. */
function canBe(field: Field<unknown> | undefined, typed: string): boolean {
  return field?.read(typed) !== undefined;
}

/** What is typed into each field that both doors have: as the page fills its form in. */
function typedInto(path: string, { act, takes }: CommandDoor): Map<string, string> {
  const form = forms.get(path);
  if (form === undefined) throw new Error(`no page of the filled database shows the form of ${path}`);
  const pattern = new RegExp(`^${path.replaceAll(/:(\w+)/g, "(?<$1>[^/]+)")}$`);
  const params = pattern.exec(form.action)?.groups ?? {};
  const { given } = routeAt(path);
  const typed = new Map<string, string>();
  for (const name of Object.keys(act.fields).filter((each) => each in takes)) {
    const said = given[name] === true ? "yes" : given[name];
    if (said === undefined) {
      typed.set(name, decodeURIComponent(params[name] ?? form.fields[formName(name)] ?? ""));
    } else if (said !== null && said !== false) typed.set(name, String(said));
  }
  return typed;
}

interface Outcome {
  status: number | null;
  refusal: string | null;
  /** What was recorded, without time and door. */
  acts: { actor: string; action: string; subject: unknown; before: unknown; after: unknown }[];
}

async function throughForm(
  { database, dashboard, cookie }: World,
  path: string,
  typed: ReadonlyMap<string, string>,
): Promise<Outcome> {
  const { act } = routeAt(path);
  const shown = forms.get(path)?.fields ?? {};
  const own = Object.keys(act.fields).map((name) => [formName(name), typed.get(name) ?? ""]);
  const address = path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(typed.get(name) ?? ""));
  return recordedBy(database, async () => {
    const form = { ...shown, ...Object.fromEntries(own) };
    const answer = await send(`${dashboard.url}${address}`, { cookie, form });
    const said = /<p class="problem"[^>]*>([^<]*)</.exec(await answer.text())?.[1];
    const { status } = answer;
    return { status, refusal: status === 303 ? null : plain(said ?? `status ${status}`) };
  });
}

async function throughCommand(
  { database }: World,
  { words, takes, besides }: CommandDoor,
  typed: ReadonlyMap<string, string>,
): Promise<Outcome> {
  const args = Object.entries(takes).flatMap(([name, { flags }]) => {
    const text = typed.get(name) ?? "";
    if (text === "") return [];
    const [option = ""] = flags.split(/[ ,]/);
    return flags.startsWith("-") ? (flags.includes("<") ? [option, text] : [option]) : [text];
  });
  return recordedBy(database, async () => {
    const { error, err } = await runCommand(
      (program, context) => registerCommands(program, context, words),
      [...words, ...args, "--by", person, ...besides],
      { env: environmentOf(database) },
    );
    // What a command waits for once the act is done is another matter.
    if (error === null || error instanceof UnreachableError) return { status: null, refusal: null };
    const { cause, message } = error as Error;
    // A command adds what helps to the refusal itself.
    return { status: null, refusal: err || (cause instanceof Error ? cause.message : message) };
  });
}

async function recordedBy({ db }: FilledDatabase, play: () => Promise<Omit<Outcome, "acts">>): Promise<Outcome> {
  const newest = (await readAudit(db, { limit: 1 }))[0]?.id ?? 0;
  const played = await play();
  const recorded = (await readAudit(db, { limit: 100 })).filter(({ id }) => id > newest);
  const acts = recorded.map(({ actor, action, subject, before, after }) => ({
    actor,
    action,
    subject,
    before: withoutTimes(before),
    after: withoutTimes(after),
  }));
  return { ...played, acts };
}

const plain = (text: string): string =>
  text
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&")
    .trim();

/** A month takes two people at both doors. */
const settings = { TALLYHOOK_ENCRYPTION_KEY: "ab".repeat(32), REPORTS_CLOSE_FOUR_EYES: "always" };

const environmentOf = ({ environment, service }: FilledDatabase) => ({
  ...environment,
  ...settings,
  TALLYHOOK_TIME_ZONE: "UTC",
  SVC_BASE_URL: service.baseUrl,
  SVC_API_KEY: service.apiKey,
});

/** Records are compared by themselves; tokens, keys of calls and what is encrypted are random. */
const unlike = new Set([
  "people.audit",
  "people.sessions",
  "people.sign_in_links",
  "receiver.secrets",
  "reconcile.endpoint_calls",
  // It has the account, for the rule of the two people; a command has none.
  "reports.preparations",
  "reports.preparation_ends",
]);

/** Every row of the other tables, without times. */
type Rows = Readonly<Record<string, readonly string[]>>;

const rowsOf = async ({ database }: World): Promise<Rows> =>
  Object.fromEntries(
    [...(await everyRow(database.db))]
      .filter(([table]) => !unlike.has(table))
      .map(([table, rows]) => [table, rows.replaceAll(times, "TIME").split("\n").toSorted()]),
  );

const withoutTimes = (values: Record<string, unknown> | null): unknown =>
  JSON.parse(JSON.stringify(values).replaceAll(times, "TIME"));

/** Times, and the hashes that a seal has of them. */
const times = /\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?( UTC|\+00|Z)?|(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])/g;

/** A copy of the filled database and its service, with a dashboard on which somebody may do everything. */
interface World {
  database: FilledDatabase;
  dashboard: DashboardStand;
  cookie: string;
  close(): Promise<void>;
}

async function openWorld(): Promise<World> {
  const database = await openFilled();
  const dashboard = await openDashboard(database, { service: database.service, settings });
  const { cookie } = await signedIn(database.db, roleNames, { email: person });
  // The samples name the newest account: another than the one that acts.
  await signedIn(database.db, ["viewer"], { email: "new.viewer@example.com" });
  return {
    database,
    dashboard,
    cookie,
    async close() {
      await dashboard.close();
      await database.destroy();
    },
  };
}
