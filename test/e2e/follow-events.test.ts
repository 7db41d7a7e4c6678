import { afterAll, beforeAll, expect, test } from "vitest";
import { signatureScheme } from "../../src/core/contract/signature/signature-scheme.ts";
import { eventually } from "../support/eventually.ts";
import { type OwnServer, startOwnServer } from "../support/own-server.ts";
import { type Deployment, layOutDeployment, webhookSecret } from "./deployment.ts";
import { type Program, killPrograms, runTallyhook } from "./program.ts";

const withinMs = 60_000;
let server: OwnServer;
let deployment: Deployment;

beforeAll(async () => {
  server = await startOwnServer();
  deployment = await layOutDeployment({ databaseUrl: server.url });
  await deployment.startReceiver();
});
afterAll(async () => {
  await killPrograms();
  await server?.destroy();
});

/** Delivers one event as the service does, again and again until it is acknowledged. */
async function deliver(id: string): Promise<void> {
  const body = Buffer.from(JSON.stringify({ id, type: "order.paid", created_at: "2026-03-01T12:00:00Z", data: {} }));
  await eventually(
    `${id} is acknowledged`,
    async () => {
      const headers = signatureScheme("svc").sign({
        body,
        secrets: [webhookSecret],
        at: new Date(),
        messageId: id,
      });
      const answer = await fetch(deployment.webhooksUrl, { method: "POST", headers, body });
      await answer.arrayBuffer();
      return answer.status === 200;
    },
    { withinMs, everyMs: 200 },
  );
}

const linesOf = (program: Program): number => program.output().match(/^ +\d+ .* received +order\.paid/gm)?.length ?? 0;

test("events list --follow prints what arrives as lines, over a restart of the database, until Ctrl-C", async () => {
  await deliver("evt_before");
  const json = runTallyhook(["events", "list", "--follow", "--json"], deployment.environment);
  const lines = runTallyhook(["events", "list", "--follow", "--type", "order.paid"], deployment.environment);
  await json.printed("evt_before", withinMs);
  await lines.printed("order.paid", withinMs);
  await deliver("evt_while");
  await json.printed("evt_while", withinMs);
  await eventually("both lines are printed", () => linesOf(lines) === 2, { withinMs });

  await server.kill();
  for (const each of [json, lines]) await each.printed("the database does not answer", withinMs);
  await server.restart();
  await deliver("evt_after");
  for (const each of [json, lines]) await each.printed("the database answers again", withinMs);
  await json.printed("evt_after", withinMs);
  await eventually("all lines are printed", () => linesOf(lines) === 3, { withinMs });

  for (const each of [json, lines]) {
    each.signalGroup("SIGINT");
    expect(await each.exited, each.output()).toEqual({ code: 0, signal: null });
  }
  const events = json
    .output()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => (JSON.parse(line) as { event_id: string }).event_id);
  expect(events).toEqual(["evt_before", "evt_while", "evt_after"]);
  expect(linesOf(lines)).toBe(3);
  expect(json.output().match(/does not answer/g)).toHaveLength(1);
}, 240_000);
