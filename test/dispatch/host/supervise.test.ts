import { type ChildProcess, fork } from "node:child_process";
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import {
  type RunningHandlers,
  type SuperviseOptions,
  superviseHandlers,
} from "../../../src/parts/delivery/handlers/host/supervise.ts";
import { listHandlerFiles } from "../../../src/parts/delivery/handlers/load-handlers.ts";
import { createLog } from "../../../src/platform/log.ts";
import { seededRandom } from "../../../src/platform/random.ts";
import { eventually } from "../../support/eventually.ts";
import { signalIfThere } from "../../support/process-tree.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { applyAs, emptyDispatch, orderAt, untilRegistered } from "../dispatch-stand.ts";

const database = useTestDatabase();
let folder: string;
let hosts: ChildProcess[];
let mostAtOnce: number;
let lines: Record<string, unknown>[];
let supervised: RunningHandlers | null;

beforeAll(() =>
  database.db.raw("create schema own; create table own.done (handler text, id text); create table own.begun (id text)"),
);
beforeEach(async () => {
  await emptyDispatch(database.db);
  await database.db.raw("truncate own.done, own.begun");
  folder = await mkdtemp(join(tmpdir(), "tallyhook-handlers-"));
  [hosts, mostAtOnce, lines, supervised] = [[], 0, [], null];
});
afterEach(async () => {
  await supervised?.close();
  if (alive().length > 0) throw new Error("a host is left over");
  await rm(folder, { recursive: true });
});
afterAll(() => {
  for (const { pid } of hosts ?? []) if (pid !== undefined) signalIfThere(pid, "SIGKILL");
});

const alive = () => hosts.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);

const keep = (text: string): void => {
  for (const line of text.split("\n").filter(Boolean)) {
    try {
      lines.push(JSON.parse(line) as Record<string, unknown>);
    } catch {
      // What V8 says when it is out of memory.
    }
  }
};

function spawn(): ChildProcess {
  const child = fork(inject("program"), ["handlers", "host"], {
    cwd: tmpdir(),
    // As in tallyhook start: where the database is, only its supervisor knows.
    env: { PATH: process.env["PATH"], TALLYHOOK_DATA_DIR: folder, TALLYHOOK_HANDLERS: folder },
    execArgv: ["--max-old-space-size=96"],
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding("utf8").on("data", keep);
  hosts.push(child);
  mostAtOnce = Math.max(mostAtOnce, alive().length);
  return child;
}

const quick: SuperviseOptions = {
  loadMs: 60_000,
  mostLoadMs: 60_000,
  silentMs: 1_000,
  marginMs: 1_500,
  restart: { maxAttempts: Number.POSITIVE_INFINITY, baseDelayMs: 1, maxDelayMs: 1 },
  wellAfterMs: 60_000,
  calmAfterMs: 600_000,
  mostProcesses: 8,
};

function supervise(options: Partial<SuperviseOptions> = {}, begin = spawn): void {
  supervised = superviseHandlers(
    {
      log: createLog({ level: "info", name: "test", destination: { write: keep } }),
      random: seededRandom(1),
      spawn: begin,
      listFiles: () => listHandlerFiles([folder]),
      start: {
        type: "start",
        parentPid: process.pid,
        databaseUrl: database.directUrl,
        service: null,
        now: null,
      },
    },
    { ...quick, ...options },
  );
}

const definition = pathToFileURL(join(inject("image"), "src/bin/handlers.js")).href;

const file = (name: string, options: string, run: string): Promise<void> =>
  writeFile(
    join(folder, `${name}.mjs`),
    `import { defineHandler } from ${JSON.stringify(definition)};
     export default defineHandler({ name: "${name}", on: ["order.created"], ${options},
       async run({ order, db, signal }) { ${run} } });`,
  );

/** What a handler does to an order that bears its name. */
const deeds: Record<string, string> = {
  exits: "process.exit(3);",
  aborts: "process.abort();",
  kills: "process.kill(process.pid); await new Promise(() => {});",
  throws: 'setTimeout(() => { throw new TypeError("later"); }); await new Promise(() => {});',
  floods:
    "for (const kept = []; ; await new Promise((go) => setTimeout(go, 10))) kept.push(Array.from({ length: 8_000 }, (_, n) => ({ n })));",
  leaks: 'void Promise.reject(new RangeError("leaked"));',
  never: "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);",
};

const hostile = `
  if (order.id === "blocks") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000);
  await db("own.begun").insert({ id: order.id });
  switch (order.id) { ${Object.entries(deeds)
    .map(([name, code]) => `case ${JSON.stringify(name)}: { ${code} break; }`)
    .join("\n")} }`;
const deedOnImport = "for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);";
const innocent = 'await db("own.done").insert({ handler: "innocent", id: order.id });';

async function logged(msg: RegExp, fields: Record<string, unknown> = {}) {
  const isMeant = (line: Record<string, unknown>): boolean =>
    msg.test(String(line["msg"])) &&
    Object.entries(fields).every(([key, value]) =>
      value instanceof RegExp ? value.test(String(line[key])) : line[key] === value,
    );
  try {
    return await eventually("it is logged", () => lines.find(isMeant));
  } catch (cause) {
    const all = lines.map((line) => JSON.stringify(line).slice(0, 300)).join("\n");
    throw new Error(`not logged: ${msg} ${Object.values(fields).join()}\n${all}`, { cause });
  }
}

/** The handlers of each process that began to run some. */
const runs = (): string[] =>
  lines
    .filter(({ msg }) => msg === "the process of the handlers runs")
    .map(({ handlers }) => (handlers as string[]).join());

const arrive = (...ids: string[]) => applyAs(database.db, "event:1", ...ids.map((id) => orderAt(id, 1)));

/** As if the leases of what was running had ended, and the waits of what a busy machine kept past its deadline. */
const endLeases = () =>
  database
    .db("dispatch.runs")
    .where({ state: "waiting" })
    .update({ claimed_until: null, due_at: database.db.fn.now() });

const untilInnocentHas = (id: string) =>
  eventually(`${id} was handled by the other one`, async () => {
    await endLeases();
    return database.db("own.done").where({ handler: "innocent", id }).first("id");
  });

describe("a handler that", () => {
  beforeEach(async () => {
    await file("hostile", "attempts: 1, deadlineMs: 500", hostile);
    await file("innocent", "attempts: 100, deadlineMs: 500", innocent);
  });

  test("ends its process in any way has it started again, and costs others nothing but time", async () => {
    supervise();
    await untilRegistered(database.db, "innocent");
    const ends: [string, RegExp][] = [
      ["exits", /^it exited with code 3, as by process\.exit\(\)/],
      ["aborts", /^it aborted \(SIGABRT\)/],
      ["kills", /^it was asked to end by SIGTERM/],
      ["throws", /^an exception was caught by nobody \(TypeError\)/],
      // How full its heap was is known as of its last sign of life, which a busy machine delays.
      ["floods", /ran out of memory/],
      ["never", /^a handler blocked it for \d+ s, longer than any deadline/],
    ];
    for (const [deed, why] of ends) {
      lines.length = 0;
      await arrive(deed);
      const { handlers } = await logged(/of the handlers has ended/, { why });
      expect(handlers).toContain("hostile");
      await untilInnocentHas(deed);
    }
    const dead = await eventually("each change of the hostile one is dead", async () => {
      await endLeases();
      const rows = await database.db("dispatch.runs").where({ state: "dead" }).orderBy("seq");
      return rows.length === ends.length ? rows : null;
    });
    expect(dead.map(({ id }) => id as string)).toEqual(ends.map(([deed]) => deed));
    // An attempt that was noted before its process ended has its own reason.
    const reasons = new Set(dead.map(({ error }) => error as string));
    reasons.delete("DeadlineExceeded");
    expect([...reasons]).toEqual(["ProcessEndedWhileItRan"]);
    const begun = await database.db("own.begun").pluck<string[]>("id");
    expect(begun.toSorted()).toEqual(ends.map(([deed]) => deed).toSorted());
  });

  test("leaks a rejected promise or blocks its process is named, and the process goes on", async () => {
    supervise({ marginMs: 30_000 });
    await untilRegistered(database.db, "innocent");
    await arrive("leaks");
    expect(await logged(/leaked a promise/)).toMatchObject({ reason: "RangeError" });
    await arrive("blocks");
    const { handlers } = await logged(/gives no sign of life/);
    expect(handlers).toContain("hostile");
    const { blockedMs } = await logged(/the process of the handlers goes on/);
    expect(blockedMs).toBeGreaterThan(1_000);
    // The call itself has blocked, so that one alone is named afterwards.
    await logged(/has kept its process from all else/, { handler: "hostile" });
    await untilInnocentHas("blocks");
    expect(hosts).toHaveLength(1);
  });
});

test("calls that go on after their deadlines are bounded: their process is started again", async () => {
  for (const name of ["hangs", "hangs-too"]) {
    await file(name, "deadlineMs: 100, concurrency: 60", "await new Promise(() => {});");
  }
  supervise();
  for (const name of ["hangs", "hangs-too"]) await untilRegistered(database.db, name);
  await arrive(...Array.from({ length: 60 }, (_, n) => `order-${n}`));
  await logged(/of the handlers has ended/, {
    why: /^1\d\d calls of (hangs|hangs-too), hangs(-too)? went on after their deadline/,
  });
  await logged(/process of the handlers runs/);
});

describe("a file that", () => {
  const mended = async () => {
    await file("wrong", "attempts: 1", innocent);
    await logged(/process of the handlers runs/);
  };

  test.each([
    ["has no handler", "export {};", /^One handler is not usable:\n.*wrong\.mjs: it has no default/],
    ["does not parse", "export default {", /wrong\.mjs: its import failed \(SyntaxError/],
    ["exits when it is imported", "process.exit(0);", /^it exited with code 0.*, while it loaded .*wrong\.mjs$/],
    [
      "throws later when it is imported",
      'setTimeout(() => { throw new RangeError("x"); }); await new Promise(() => {});',
      /^an exception was caught by nobody \(RangeError\), while it loaded .*wrong\.mjs$/,
    ],
  ])("%s is named, and loaded once it is right", async (_, text, why) => {
    await writeFile(join(folder, "wrong.mjs"), text);
    supervise();
    await logged(/of the handlers has ended/, { why });
    await mended();
  });

  test("never ends its import has its process killed, and more time at each next start", async () => {
    await writeFile(join(folder, "wrong.mjs"), deedOnImport);
    supervise({ loadMs: 500, mostLoadMs: 60_000 });
    const why = /^it took longer than (\d+) s\..*, while it loaded .*wrong\.mjs$/;
    const limits = await eventually("it was given more time", () => {
      const seconds = lines.flatMap(({ why: said }) => why.exec(String(said))?.[1] ?? []);
      return new Set(seconds).size > 1 ? seconds.map(Number) : null;
    });
    expect(limits).toEqual(limits.toSorted((a, b) => a - b));
    await mended();
  });

  test("is not usable costs the others nothing, and is tried in a process of its own until it is", async () => {
    await file("innocent", "attempts: 1", innocent);
    await writeFile(join(folder, "late.mjs"), "export {};");
    supervise();
    await untilRegistered(database.db, "innocent");
    await logged(/those that are not usable are tried again/, { problems: /late\.mjs: it has no/ });
    await logged(/of the handlers has ended/, { why: /^One handler is not usable/ });
    await file("late", "attempts: 1", innocent);
    await untilRegistered(database.db, "late");
    expect(runs().filter((names) => names.includes("innocent"))).toEqual(["innocent"]);
  });

  test("becomes usable beside one that does not makes no process too many, and the other is told of", async () => {
    await file("innocent", "attempts: 1", innocent);
    for (const name of ["late", "never"]) await writeFile(join(folder, `${name}.mjs`), "export {};");
    supervise({ mostProcesses: 2 });
    await untilRegistered(database.db, "innocent");
    await logged(/of the handlers has ended/, { why: /^2 handlers are not usable/ });
    await file("late", "attempts: 1", innocent);
    await untilRegistered(database.db, "late");
    await logged(/those that are not usable wait for the next start/, { problems: /never\.mjs/ });
    expect(supervised?.troubles()).toMatchObject([
      {
        files: [expect.stringMatching(/never\.mjs$/)],
        isApart: true,
        why: expect.stringContaining("no default export"),
      },
    ]);
    expect(mostAtOnce).toBe(2);
  });

  test("comes after all others are gone is run", async () => {
    await file("one", "attempts: 1", innocent);
    supervise();
    await untilRegistered(database.db, "one");
    await rm(join(folder, "one.mjs"));
    hosts.at(-1)?.kill("SIGKILL");
    await logged(/of the handlers has ended/);
    await eventually("nothing is tried", () => supervised?.troubles().length === 0);
    await file("two", "attempts: 1", innocent);
    await untilRegistered(database.db, "two");
  });

  test("has the name of another one does not run beside it, and does in its place", async () => {
    await file("one", "attempts: 1", innocent);
    await copyFile(join(folder, "one.mjs"), join(folder, "two.mjs"));
    supervise();
    await logged(/of the handlers has ended/, { why: /two\.mjs: its name "one" is also that of/ });
    expect(runs()).toEqual(["one"]);
    await rm(join(folder, "one.mjs"));
    await eventually("the second one runs", () => runs().length === 2);
  });
});

describe("a handler that ends its process again and again", () => {
  // It takes a while, so that it is always running when the other one ends their process.
  const busy = "await new Promise((go) => setTimeout(go, 300)); ";

  test.each([
    ["alone", innocent, "process.exit(3);"],
    [
      "beside one that is always running then",
      busy + innocent,
      "setTimeout(() => process.exit(3), 100); await new Promise(() => {});",
    ],
  ])("%s goes on in a process of its own, and the others in theirs", async (_, other, deed) => {
    await file("an-innocent", "attempts: 100, deadlineMs: 2_000", other.replace("innocent", "an-innocent"));
    await file("hostile", "attempts: 100, deadlineMs: 500", deed);
    supervise();
    await untilRegistered(database.db, "hostile");
    await untilRegistered(database.db, "an-innocent");
    const ids = Array.from({ length: 4 }, (_, n) => `order-${n}`);
    await arrive(...ids);
    const again = setInterval(() => void endLeases(), 200);
    try {
      await eventually("it has a process of its own", () => runs().includes("hostile"));
      await eventually(
        "the other one has handled all",
        async () =>
          (await database.db("own.done").where({ handler: "an-innocent" }).distinct("id")).length === ids.length,
      );
      await eventually("it ends its own", () => runs().filter((names) => names === "hostile").length > 1);
    } finally {
      clearInterval(again);
    }
    expect(runs().filter((names) => names === "an-innocent")).toHaveLength(1);
  });
});

test("a machine that has no memory left for a process is asked again, and it is told of", async () => {
  await file("innocent", "attempts: 1", innocent);
  let failures = 2;
  supervise({}, () => {
    if (failures-- > 0) throw Object.assign(new Error("spawn ENOMEM"), { code: "ENOMEM" });
    return spawn();
  });
  await logged(/of the handlers has ended/, { why: "it could not be started (ENOMEM)" });
  await untilRegistered(database.db, "innocent");
  expect(supervised?.troubles()).toEqual([]);
});

test("a start that says nothing in its time is repeated with twice the time, until it is enough", async () => {
  await file("slow", "attempts: 1", innocent);
  supervise({ loadMs: 20, mostLoadMs: 60_000 });
  await logged(/of the handlers has ended/, { why: /^it said nothing for/ });
  await logged(/process of the handlers runs/);
});
