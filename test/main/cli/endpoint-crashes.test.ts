import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { killPrograms, runTallyhook } from "../../e2e/program.ts";
import { untilWaiting } from "../../support/until-waiting.ts";
import { type EndpointStand, clearEndpoints, setUpEndpoints } from "./endpoint-stand.ts";

let stand: EndpointStand;

beforeAll(async () => {
  stand = await setUpEndpoints();
});
afterAll(async () => {
  await killPrograms();
  await stand.close();
});
beforeEach(() => clearEndpoints(stand));

/** kill -9 of a command in the moment that `moment` waits for. */
async function killed(command: string, moment: Promise<unknown>): Promise<void> {
  const program = runTallyhook(["endpoint", command], stand.environment);
  await Promise.race([
    moment,
    program.exited.then(({ code }) => {
      throw new Error(`ended with ${code} before its time: ${program.output()}`);
    }),
  ]);
  await program.kill();
}

/** kill -9 of a command that waits for a table, then lets the table go. */
async function killedWhileLocked(command: string, table: string): Promise<void> {
  const trx = await stand.db.transaction();
  try {
    await trx.raw(`lock table ${table} in exclusive mode`);
    await killed(command, untilWaiting(stand.db));
  } finally {
    await trx.rollback();
  }
}

/** Points of a command at which it can die, and how many secrets the service gave in all when it was run again. */
const points: [point: string, die: (command: string) => Promise<void>][] = [
  ["before its key is stored", (command) => killedWhileLocked(command, "reconcile.endpoint_calls")],
  [
    "before the call is made",
    async (command) => {
      stand.service.faults.push("swallowed");
      await killed(command, stand.service.struck("swallowed"));
    },
  ],
  [
    "after the call is made and before its answer",
    async (command) => {
      stand.service.faults.push("unanswered");
      await killed(command, stand.service.struck("unanswered"));
    },
  ],
  ["with the answer in its hands", (command) => killedWhileLocked(command, "receiver.secrets")],
];

async function expectOneSecretMore(given: number): Promise<void> {
  expect(stand.service.given).toHaveLength(given);
  expect((await stand.secrets()).map(({ value }) => value)).toEqual(stand.service.given.toReversed());
  expect(await stand.db("reconcile.endpoint_calls").whereNull("settled_at")).toEqual([]);
}

describe.each(points)("killed %s", (_point, die) => {
  it("a registration is finished by the next run: one endpoint, its secret stored", async () => {
    await die("register");
    const { error } = await stand.endpoint("register");
    expect(error).toBeNull();
    expect(await stand.endpoints()).toHaveLength(1);
    await expectOneSecretMore(1);
  });

  it("a rotation is finished by the next run: one rotation, both secrets kept", async () => {
    await stand.endpoint("register");
    await die("rotate");
    const { error } = await stand.endpoint("rotate");
    expect(error).toBeNull();
    await expectOneSecretMore(2);
    const [current, former] = await stand.secrets();
    expect(current?.endsAt).toBeNull();
    expect(former?.endsAt).not.toBeNull();
  });
});

describe("killed after the call is made, and the service shows the secret no more", () => {
  it("an endpoint's registration ends with a rotation", async () => {
    stand.service.faults.push("unanswered", "hidden");
    await killed("register", stand.service.struck("unanswered"));
    expect((await stand.endpoint("register")).error).toBeNull();
    expect((await stand.secrets())[0]?.value).toBe(stand.service.given.at(-1));
    expect(await stand.endpoints()).toHaveLength(1);
  });

  it("a rotation whose key the service has forgotten is known to be lost, and made again in time", async () => {
    await stand.endpoint("register");
    stand.service.faults.push("unanswered");
    const program = runTallyhook(["endpoint", "rotate"], stand.environment);
    await stand.service.struck("unanswered");
    await program.kill();
    await stand.db("reconcile.endpoint_calls").whereNull("settled_at").update({ idempotency_key: crypto.randomUUID() });
    const lost = await stand.endpoint("rotate");
    expect(String(lost.error)).toContain("was lost");
    expect((await stand.secrets())[0]?.endsAt).toBeNull();
    await stand.sandbox.control("POST", "/clock", { advance_seconds: 86_401 });
    expect((await stand.endpoint("rotate")).error).toBeNull();
    expect((await stand.secrets())[0]?.value).toBe(stand.service.given.at(-1));
  });
});
