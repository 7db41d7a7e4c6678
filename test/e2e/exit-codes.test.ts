import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { migrateQueueSchema } from "../../src/core/queue/backend.ts";
import { exitCodes } from "../../src/platform/errors.ts";
import { testKey } from "../../src/parts/sandbox/engine/keys.ts";
import { speak } from "../main/golden/transcript.ts";
import { type HostileService, refusal, startHostileService } from "../reconcile/hostile-service.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { freePort } from "../support/free-port.ts";
import { projectRoot } from "../support/project-root.ts";
import { killPrograms, runTallyhook } from "./program.ts";

const operations = readFileSync(join(projectRoot, "docs/operations.md"), "utf8");

/** The codes of the table that stands first under a heading. */
function documented(heading: string): number[] {
  const [, part = ""] = operations.split(`\n## ${heading}\n`);
  const [, table = ""] = (part.split("\n## ")[0] ?? "").split("| Exit code |");
  const [rows = ""] = table.split("\n\n");
  return [...rows.matchAll(/^\| (\d+) /gm)].map(([, code]) => Number(code));
}

let database: TestDatabase;
let service: HostileService;
let environment: Record<string, string>;

beforeAll(async () => {
  database = await createTestDatabase();
  await migrateQueueSchema(database.url);
  service = await startHostileService();
  environment = {
    DATABASE_URL: database.url,
    SVC_BASE_URL: service.url,
    SVC_API_KEY: testKey,
    RECONCILE_GRACE_SECONDS: "0",
  };
});
afterAll(async () => {
  await killPrograms();
  await service.close();
  await database.destroy();
});

interface Ended {
  code: number | null;
  output: string;
}
type Run = (args: string[], env?: Record<string, string>) => Promise<Ended>;

const runAlone: Run = async (args, env = {}) => {
  const program = runTallyhook(args, { ...environment, ...env });
  const { code } = await program.exited;
  return { code, output: program.output() };
};

const runHere: Run = async (args, env = {}) => {
  const { out, err, code } = await speak(args, { env: { ...environment, ...env } });
  return { code, output: out + err };
};

interface Case {
  code: number;
  when: string;
  /** The command is a process of its own, as each is in `npm run torture`. */
  alone?: boolean;
  /** What makes it so. */
  given?(): Promise<void>;
  /** What undoes that. */
  after?(): Promise<void>;
  ends(run: Run): Promise<Ended>;
  says: RegExp;
}

/** One order of the service is not in the mirror any more. */
const forget = () =>
  database.db.raw("delete from mirror.orders where id = (select min(id) from mirror.orders)").then(() => {});
let hidden: (typeof service.objects)[string] = [];

const readerName = () => `${new URL(database.url).pathname.slice(1)}_reader`;
const readerRole = (statement: string, rest = "") =>
  database.db.raw(`${statement} ${readerName()} ${rest}`).then(() => {});

/** One after the other: each begins with an equal mirror. Of each code one case is a process of its own. */
const ofReconcile: Case[] = [
  {
    code: exitCodes.done,
    when: "an empty mirror is filled",
    ends: (run) => run(["import"]),
    says: /The mirror equals the service/,
  },
  {
    code: exitCodes.done,
    when: "all was read, and is equal",
    ends: (run) => run(["reconcile", "--full"]),
    says: /The mirror equals the service/,
  },
  {
    code: exitCodes.healed,
    when: "an order was missing here, with --fail-on-drift",
    alone: true,
    given: forget,
    ends: (run) => run(["reconcile", "--full", "--fail-on-drift"]),
    says: /exit code 5, because --fail-on-drift counts what was healed \(missing_here 1\)/,
  },
  {
    code: exitCodes.differs,
    when: "an order is unknown to the service",
    alone: true,
    async given() {
      hidden = service.objects["orders"] ?? [];
      service.objects["orders"] = hidden.slice(1);
    },
    async after() {
      service.objects["orders"] = hidden;
      await runHere(["reconcile", "--full"]);
    },
    ends: (run) => run(["reconcile", "--full"]),
    says: /DRIFT LEFT: 1 object differs/,
  },
  {
    code: exitCodes.differs,
    when: "the endpoint is not in order, with --strict",
    ends: (run) => run(["reconcile", "--full", "--strict"], { PUBLIC_URL: "https://hooks.example.com" }),
    says: /exit code 3, because --strict counts 1 open finding that is no drift \(endpoint 1\)/,
  },
  {
    code: exitCodes.incomplete,
    when: "the service refuses a list",
    alone: true,
    async given() {
      service.quirks.instead = ({ list }) => (list === "customers" ? refusal(400, "invalid_value") : undefined);
    },
    async after() {
      delete service.quirks.instead;
    },
    ends: (run) => run(["reconcile", "--full"]),
    says: /INCOMPLETE/,
  },
  {
    code: exitCodes.configuration,
    when: "the service refuses the key",
    alone: true,
    async given() {
      service.quirks.instead = () => refusal(401, "invalid_api_key");
    },
    async after() {
      delete service.quirks.instead;
    },
    ends: (run) => run(["reconcile", "--full"]),
    says: /SVC_API_KEY/,
  },
];

const ofEveryCommand: Case[] = [
  {
    code: exitCodes.done,
    when: "it is done",
    alone: true,
    ends: (run) => run(["events", "list"]),
    says: /All events/,
  },
  {
    code: exitCodes.configuration,
    when: "a setting is wrong",
    alone: true,
    ends: (run) => run(["events", "list"], { PORT: "70000" }),
    says: /PORT/,
  },
  {
    code: exitCodes.configuration,
    when: "the database is away",
    ends: async (run) => run(["events", "list"], { DATABASE_URL: `postgres://a:b@127.0.0.1:${await freePort()}/c` }),
    says: /DATABASE_URL: nothing listens/,
  },
  {
    code: exitCodes.configuration,
    when: "a check of doctor failed",
    ends: (run) => run(["doctor"]),
    says: /failed +worker/,
  },
  {
    code: exitCodes.configuration,
    when: "the role of DATABASE_URL may not do it",
    given: () => readerRole("create role", `login password '${new URL(database.url).password}'`),
    after: () => readerRole("drop role"),
    ends(run) {
      const url = new URL(database.url);
      url.username = readerName();
      return run(["events", "list"], { DATABASE_URL: url.href });
    },
    says: /The role of DATABASE_URL lacks a privilege that this needs \(42501\)/,
  },
  {
    code: exitCodes.usage,
    when: "an option is unknown",
    ends: (run) => run(["events", "list", "--newest"]),
    says: /unknown option '--newest'/,
  },
  {
    code: exitCodes.usage,
    when: "a value is no word of any length, and is repeated without what a terminal would obey",
    alone: true,
    ends: (run) => run(["events", "list", "--state", `\u001b[31m${"x".repeat(10_000)}`]),
    says: /^error: option '--state <state>' argument '\ufffd\[31mx{50,60}… \(\d+ characters\) is invalid\. Use one of/,
  },
  {
    code: exitCodes.usage,
    when: "a value is empty",
    ends: (run) => run(["sandbox", "--host", ""]),
    says: /'--host <address>' argument '' is invalid\. It is empty/,
  },
  {
    code: exitCodes.usage,
    when: "an id is not there",
    ends: (run) => run(["events", "show", "evt_none"]),
    says: /evt_none/,
  },
  {
    code: exitCodes.usage,
    when: "nobody can answer the question",
    ends: (run) => run(["endpoint", "remove", "we_1"], { TALLYHOOK_ENCRYPTION_KEY: "ab".repeat(32) }),
    says: /Add --yes/,
  },
  {
    code: exitCodes.unexpected,
    when: "the database is not what it should be",
    alone: true,
    given: () => database.db.raw("alter view inbox.events rename to not_here").then(() => {}),
    after: () => database.db.raw("alter view inbox.not_here rename to events").then(() => {}),
    ends: (run) => run(["events", "list"]),
    says: /unexpected error/,
  },
  {
    code: exitCodes.endedAtOnce,
    when: "it is asked to end twice",
    alone: true,
    async ends() {
      const port = await freePort();
      const env = {
        HOST: "127.0.0.1",
        PORT: String(port),
        SVC_WEBHOOK_SECRETS: "whsec_long_enough_for_a_test",
      };
      const program = runTallyhook(["receiver"], { ...environment, ...env });
      await program.printed("the receiver listens", 60_000);
      // A request that never ends is under way: the receiver waits for it.
      const sender = connect(port, "127.0.0.1");
      sender.on("error", () => {});
      sender.write("POST /webhooks HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{");
      await once(sender, "connect");
      program.signalGroup("SIGINT");
      await program.printed("the receiver stops", 60_000);
      program.signalGroup("SIGINT");
      const { code } = await program.exited;
      sender.destroy();
      return { code, output: program.output() };
    },
    says: /the receiver stops/,
  },
];

const check = async ({ code, alone = inject("isTorture"), given, after, ends, says }: Case) => {
  await given?.();
  try {
    const ended = await ends(alone ? runAlone : runHere);
    expect(ended.output).toMatch(says);
    expect(ended.code, ended.output).toBe(code);
  } finally {
    await after?.();
  }
};

describe("reconcile ends", () => {
  test.each(ofReconcile)("with $code when $when", check, 120_000);

  test("with no code that its table does not have, and the table has no other", () => {
    const provoked = new Set(ofReconcile.map(({ code }) => code));
    expect(new Set(documented("Reconciliation"))).toEqual(provoked);
  });
});

describe("every command ends", () => {
  test.each(ofEveryCommand)("with $code when $when", check, 120_000);

  test("with no code that the table does not have, and the table has no other", () => {
    const alone = [...ofEveryCommand, ...ofReconcile].filter((each) => each.alone);
    const provoked = alone.map(({ code }) => code);
    const numbers = (codes: Iterable<number>) => [...new Set(codes)].sort((a, b) => a - b);
    expect(documented("Exit codes")).toEqual(numbers(provoked));
    expect(numbers(provoked)).toEqual(numbers(Object.values(exitCodes)));
  });
});
