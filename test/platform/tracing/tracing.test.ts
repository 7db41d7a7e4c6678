import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import { wallClock } from "../../../src/platform/clock.ts";
import { createLog } from "../../../src/platform/log.ts";
import { parseHeaderPairs } from "../../../src/platform/tracing/header-pairs.ts";
import { type RunningTracing, startTracing } from "../../../src/app/tracing.ts";
import {
  appliedContext,
  endSpan,
  isTracing,
  parseTraceparent,
  startSpan,
  traceparentOf,
  withinSpan,
} from "../../../src/platform/tracing/tracing.ts";
import { type OtlpAnswer, type OtlpReceiver, startOtlpReceiver } from "../../support/otlp-receiver.ts";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const spanId = "00f067aa0ba902b7";

describe("a traceparent", () => {
  test("is read, and written as it was read", () => {
    const text = `00-${traceId}-${spanId}-01`;
    const context = parseTraceparent(text);
    expect(context).toEqual({ traceId, spanId, traceFlags: 1, isRemote: true });
    expect(context === null ? null : traceparentOf(context)).toBe(text);
  });

  test("of a later version is read as far as it is known", () => {
    expect(parseTraceparent(`01-${traceId}-${spanId}-03-more`)).toMatchObject({ traceId, spanId });
  });

  test.each([
    undefined,
    "",
    "00",
    ["00"],
    `00-${traceId}-${spanId}`,
    `00-${traceId}-${spanId}-01-more`,
    `00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`,
    ` 00-${traceId}-${spanId}-01`,
    `ff-${traceId}-${spanId}-01`,
    `00-${"0".repeat(32)}-${spanId}-01`,
    `00-${traceId}-${"0".repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `00-${traceId}-${spanId}-0g`,
    `01-${traceId}-${spanId}-01-${"x".repeat(300)}`,
  ])("of another form is ignored: %j", (text) => {
    expect(parseTraceparent(text)).toBeNull();
  });
});

test("headers are read with their values decoded; one part that is none makes all unusable", () => {
  expect(parseHeaderPairs("authorization=Bearer%20abc%3D, x-tenant=shop")).toEqual({
    authorization: "Bearer abc=",
    "x-tenant": "shop",
  });
  expect(parseHeaderPairs("a=b=c")).toEqual({ a: "b=c" });
  for (const text of ["", "a", "=b", "a=", "a=b,", "a b=c", "a=%zz", "a=b%0d%0ac: d"]) {
    expect(parseHeaderPairs(text)).toBeNull();
  }
});

describe("while spans are exported", () => {
  let lines: string[];
  let collector: OtlpReceiver;
  let tracing: RunningTracing;
  const log = createLog({
    level: "info",
    name: "test",
    destination: { write: (line: string) => void lines.push(line) },
  });

  async function start(answer: OtlpAnswer, endpoint?: string): Promise<void> {
    collector = await startOtlpReceiver(answer);
    tracing = await startTracing(
      { log, clock: wallClock },
      {
        endpoint: endpoint ?? collector.url,
        headers: null,
        serviceName: "tallyhook-test",
        deployment: "test",
      },
    );
  }
  const makeSpans = (count: number): void => {
    for (let n = 0; n < count; n++) endSpan(startSpan("one of many", { facts: { n } }));
  };

  beforeEach(() => {
    lines = [];
  });
  afterEach(async () => {
    await tracing.close();
    await collector.close();
  });

  test("a span has the ids that others derive, bounded texts without secrets, and no text of an error", async () => {
    await start("accepted");
    const long = `Bearer abcdefgh123 ${"x".repeat(1_000)}\ud800`;
    const span = startSpan("one", {
      facts: { long, none: null },
      identity: appliedContext(7),
      links: Array.from({ length: 500 }, (_, seq) => appliedContext(seq)),
    });
    endSpan(span, "DeadlineExceeded");
    await tracing.close();
    const [sent] = collector.spans;
    expect(sent).toMatchObject({ name: "one", service: "tallyhook-test", isError: true });
    expect(sent).toMatchObject({
      traceId: span.spanContext().traceId,
      attributes: { "error.type": "DeadlineExceeded" },
    });
    expect(sent?.links).toHaveLength(128);
    expect(String(sent?.attributes["long"])).toMatch(/^Bearer \[redacted\] x{200,236}$/);
    expect(sent?.attributes).not.toHaveProperty("none");
  });

  test("a log line names the span in which it was written", async () => {
    await start("accepted");
    const span = startSpan("one", { facts: {} });
    log.info("before");
    withinSpan(span, () => log.child({ own: 1 }).info("within"));
    endSpan(span);
    const [before, within] = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(before).not.toHaveProperty("trace_id");
    const { traceId: trace_id, spanId: span_id } = span.spanContext();
    expect(within).toMatchObject({ own: 1, trace_id, span_id });
  });

  test("what does not fit into the queue is dropped", async () => {
    await start("accepted");
    makeSpans(10_000);
    await tracing.close();
    expect(collector.spans.length).toBeGreaterThan(0);
    // The queue, and the part of it that is on its way.
    expect(collector.spans.length).toBeLessThanOrEqual(2_048 + 512);
  });

  test.each<[string, OtlpAnswer, string | undefined]>([
    ["does not answer", "never", undefined],
    ["refuses", { status: 503, body: "" }, undefined],
    ["answers nonsense", { status: 400, body: "\u0000<html>" }, undefined],
    ["is not there", "accepted", "http://127.0.0.1:9"],
  ])("a collector that %s holds up nobody, and the end by seconds at most", async (_, ...how) => {
    await start(...how);
    const begunMs = performance.now();
    makeSpans(3_000);
    const madeMs = performance.now() - begunMs;
    await tracing.close();
    const closedMs = performance.now() - begunMs - madeMs;
    expect(isTracing()).toBe(false);
    // By itself it would try again for ten seconds.
    expect(closedMs).toBeLessThan(8_000);
    expect(lines.join("")).toContain("spans could not be exported");
  });
});

// By itself the SDK tries again, and its timers keep the process for ten seconds.
test("a collector that does not answer keeps no process that has ended its traces", async () => {
  const collector = await startOtlpReceiver("never");
  const module = (path: string): string => JSON.stringify(pathToFileURL(join(inject("image"), "dist/src", path)).href);
  const child = spawn(
    process.execPath,
    [
      "--input-type=module",
      "--eval",
      `import { wallClock } from ${module("platform/clock.js")};
       import { createLog } from ${module("platform/log.js")};
       import { startTracing } from ${module("app/tracing.js")};
       import { endSpan, startSpan } from ${module("platform/tracing/tracing.js")};
       const tracing = await startTracing(
         { log: createLog({ level: "silent", name: "test" }), clock: wallClock },
         { endpoint: ${JSON.stringify(collector.url)}, headers: null, serviceName: "t", deployment: "d" },
       );
       for (let n = 0; n < 2_000; n++) endSpan(startSpan("one of many", { facts: {} }));
       await new Promise((resolve) => setTimeout(resolve, 500));
       await tracing.close();
       process.stdout.write("closed");`,
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const ended = once(child, "exit");
  await once(child.stdout, "data");
  const closedAt = performance.now();
  await ended;
  expect(performance.now() - closedAt).toBeLessThan(6_500);
  await collector.close();
});
