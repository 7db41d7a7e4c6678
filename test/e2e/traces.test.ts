import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { declined, event } from "../alerts/sweep-stand.ts";
import { type ChannelServer, startChannelServer } from "../alerts/channels/channel-server.ts";
import { sampleOrder } from "../mirror/samples.ts";
import { signatureOf } from "../receiver/receiver-stand.ts";
import { untilRegistered } from "../dispatch/dispatch-stand.ts";
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from "../support/otlp-receiver.ts";
import { migrateQueueSchema } from "../../src/core/queue/backend.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { type Deployment, layOutDeployment, webhookSecret } from "./deployment.ts";
import { type Program, killPrograms } from "./program.ts";

const database = useTestDatabase();
const callers = { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7" };
const traceparent = `00-${callers.traceId}-${callers.spanId}-01`;

/** Makes a process print the modules of OpenTelemetry that it has loaded, at its end. */
const listModules = `--import=data:text/javascript,${encodeURIComponent(`
  import { createRequire } from "node:module";
  import { writeSync } from "node:fs";
  const { cache } = createRequire("/");
  process.on("exit", () => {
    const names = Object.keys(cache).map((path) => /@opentelemetry.([\\w-]+)/.exec(path)?.[1]);
    writeSync(1, "loaded:" + [...new Set(names)].filter(Boolean).sort().join(",") + "\\n");
  });`)}`;

const loadedBy = (program: Program): string[] =>
  (/^loaded:(.*)$/m.exec(program.output())?.[1] ?? "nothing listed").split(",");

let folder: string;
let collector: OtlpReceiver;
let subscriber: ChannelServer;
let deployment: Deployment;
let receiver: Program;
let worker: Program;

/** Delivers an event, signed; returns its status. */
async function send(body: string, headers: Record<string, string> = {}): Promise<number> {
  const signature = signatureOf(Buffer.from(body), { secret: webhookSecret });
  const response = await fetch(deployment.webhooksUrl, {
    method: "POST",
    headers: { "content-type": "application/json", "svc-signature": signature, ...headers },
    body,
  });
  await response.arrayBuffer();
  return response.status;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tallyhook-traces-"));
  [collector, subscriber] = [await startOtlpReceiver(), await startChannelServer()];
  const definition = pathToFileURL(join(inject("image"), "src/bin/handlers.js")).href;
  await writeFile(
    join(folder, "handler.mjs"),
    `import { defineHandler } from ${JSON.stringify(definition)};
     export default defineHandler({
       name: "win-back", on: ["order.failed"], async run({ log }) { log.info("a word of the handler"); },
     });`,
  );
  await writeFile(
    join(folder, "forward.jsonc"),
    JSON.stringify({
      destinations: {
        crm: { send: "webhooks", url: `${subscriber.url}/in`, secretFrom: "FORWARD_CRM" },
      },
      privateHosts: ["127.0.0.1"],
    }),
  );
  await migrateQueueSchema(database.url);
  const laidOut = await layOutDeployment({ databaseUrl: database.url });
  deployment = laidOut;
  Object.assign(laidOut.environment, {
    TALLYHOOK_HANDLERS: folder,
    FORWARD_SETTINGS_FILE: join(folder, "forward.jsonc"),
    FORWARD_CRM: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20of-the-collector",
    OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
    NODE_OPTIONS: listModules,
    // Long: what arrives soon was flushed by the end of a process.
    OTEL_BSP_SCHEDULE_DELAY: "60000",
  });
  [receiver, worker] = await Promise.all([laidOut.startReceiver(), laidOut.startWorker()]);
  await untilRegistered(database.db, "win-back");
  await untilRegistered(database.db, "forward:crm");
});
afterAll(async () => {
  await killPrograms();
  await collector?.close();
  await subscriber?.close();
  await rm(folder, { recursive: true, force: true });
});

test("without the variable no module of the SDK is loaded", async () => {
  const plain = await layOutDeployment({ databaseUrl: database.url });
  Object.assign(plain.environment, { NODE_OPTIONS: listModules });
  const untraced = await plain.startReceiver();
  await untraced.stop();
  expect(loadedBy(untraced)).toEqual(["api"]);
});

const contextOf = ({ traceId, spanId }: ReceivedSpan) => ({ traceId, spanId });

describe("the traces of a webhook, from its arrival to what came of it", () => {
  const body = JSON.stringify(event("order.failed", sampleOrder({ ...declined, number: "secret" })));
  const forged = JSON.stringify(event("order.failed", sampleOrder({ id: "ord_forged" })));
  let statuses: number[];
  const one = (name: string): ReceivedSpan => {
    const found = collector.spans.filter((span) => span.name === name);
    expect(found.map((span) => span.name)).toEqual([name]);
    return found[0] as ReceivedSpan;
  };

  beforeAll(async () => {
    statuses = [await send(forged, { traceparent, "svc-signature": "t=1,v1=00" }), await send(body, { traceparent })];
    await Promise.all([
      worker.printed("an alert was sent"),
      worker.printed("a word of the handler"),
      subscriber.reached(1),
    ]);
    await Promise.all([receiver.stop(), worker.stop()]);
  });

  test("the SDK was loaded for it", () => {
    expect(loadedBy(receiver)).toEqual(expect.arrayContaining(["api", "sdk-trace-base"]));
  });

  test("the webhook links to the caller's trace, and is no part of it", () => {
    const webhook = one("POST /webhooks");
    expect(webhook).toMatchObject({
      service: "tallyhook-receiver",
      parentSpanId: null,
      kind: 2,
      links: [callers],
      isError: false,
      attributes: {
        "http.request.method": "POST",
        "http.route": "/webhooks",
        "http.response.status_code": 200,
        "tallyhook.event.type": "order.failed",
        "tallyhook.webhook.fate": "stored",
      },
    });
    expect(webhook.traceId).not.toBe(callers.traceId);
  });

  test("its event was applied in a trace of its own, which links to the webhook and the batch, and the batch to it", () => {
    const [webhook, batch, applied] = [one("POST /webhooks"), one("apply batch"), one("apply event")];
    expect(applied).toMatchObject({
      service: "tallyhook-worker",
      parentSpanId: null,
      links: [contextOf(webhook), contextOf(batch)],
      attributes: {
        "tallyhook.event.id": webhook.attributes["tallyhook.event.id"],
        "tallyhook.event.state": "applied",
      },
    });
    expect(batch).toMatchObject({ parentSpanId: null, links: [contextOf(applied)] });
    expect(batch.attributes).toMatchObject({ "messaging.batch.message_count": 1 });
  });

  test("its alert was written as a part of the batch, and sent in a trace that both link", () => {
    const [batch, written, sent] = [one("apply batch"), one("write alerts"), one("send alert")];
    expect(written).toMatchObject({
      traceId: batch.traceId,
      parentSpanId: batch.spanId,
      links: [contextOf(sent)],
    });
    expect(sent).toMatchObject({ parentSpanId: null, links: [contextOf(written)] });
    expect(sent.traceId).not.toBe(batch.traceId);
  });

  test("the handler, in its own process, and the forwarding link to the event that was applied", () => {
    const applied = one("apply event");
    expect(one("process win-back")).toMatchObject({
      service: "tallyhook-handlers",
      parentSpanId: null,
      links: [contextOf(applied)],
    });
    expect(one("process forward:crm")).toMatchObject({ links: [contextOf(applied)] });
  });

  test("log lines and the alert's message name the trace in which they were written", () => {
    const lines = worker
      .output()
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const lineOf = (msg: string) => lines.find((line) => line["msg"] === msg);
    const traceOf = (name: string) => {
      const { traceId, spanId } = one(name);
      return { trace_id: traceId, span_id: spanId };
    };
    expect(lineOf("a word of the handler")).toMatchObject(traceOf("process win-back"));
    expect(lineOf("an alert was sent")).toMatchObject(traceOf("send alert"));
    const { alert } = lines.find((line) => "alert" in line) as { alert: { facts: object[] } };
    expect(alert.facts).toContainEqual({ label: "Trace", value: one("apply batch").traceId });
    expect(lineOf("the worker runs")).not.toHaveProperty("trace_id");
  });

  test("the request that was not signed has left nothing, and its traceparent is linked by nobody", () => {
    expect(statuses).toEqual([401, 200]);
    expect(collector.spans.filter(({ name }) => name === "POST /webhooks")).toHaveLength(1);
    expect(JSON.stringify(collector.requests)).not.toContain("ord_forged");
  });

  test("no span holds anything of the body, and the collector is given its header", () => {
    const sent = collector.requests.map(({ body: text }) => text).join("");
    for (const part of ["order-9", "subscription-9", "@example.com", "whsec", "postgres://"]) {
      expect(sent).not.toContain(part);
    }
    for (const { path, headers } of collector.requests) {
      expect(path).toBe("/v1/traces");
      expect(headers["authorization"]).toBe("Bearer of-the-collector");
    }
    expect(sent).toContain("deployment.environment.name");
  });
});
