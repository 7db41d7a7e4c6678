import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { signatureScheme } from "../src/core/contract/signature/signature-scheme.ts";
import type { Benchmark } from "./benchmark.ts";
import { declinedOrderEvent } from "./load/sample-events.ts";
import { benchSecret } from "./load/signed-request.ts";
import { meterCpu } from "./support/cpu-meter.ts";
import { whenQuiet } from "./support/quiet.ts";
import { spreadOf } from "./support/statistics.ts";
import { withSystem } from "./support/system.ts";

const perSecond = 100;
/** Declines among the events. Each raises an alert. */
const declinesPerSecond = 10;
const wantedP99Ms = 2_000;
const allWithinMs = 30_000;

/**
 * Measures from the 2xx of a declined order, at its sender, to its alert at a local HTTP channel. The load generator
 * sends the other events. Sender and channel are this process, so that one clock measures both.
 */
export const alertLatency: Benchmark = {
  name: "alert-latency",
  title: `Time from the 2xx to the alert at an HTTP channel at ${perSecond} events/s`,
  async run(stand, options, say) {
    const rows = [];
    const targets = [];
    const channel = await startChannel();
    try {
      const workerEnv = await alertEnvironment(stand.directory, channel.url);
      for (const backend of stand.backends) {
        const delays = await withSystem(
          stand,
          backend,
          { profile: options.profile, workerEnv },
          async ({ generator, port, pids }) => {
            const all: number[] = [];
            const seconds = Math.min(2, options.seconds);
            await sendDeclines({ port, seconds, seed: `${backend} warm-up` }, channel);
            for (let n = 1; n <= options.rounds; n++) {
              const { measured } = await whenQuiet(options, async () => {
                const stopMeter = meterCpu(pids);
                const seed = `${backend} ${n} ${performance.now()}`;
                const [measured] = await Promise.all([
                  sendDeclines({ port, seconds: options.seconds, seed }, channel),
                  generator.run({
                    port,
                    plan: {
                      kind: "open",
                      seconds: options.seconds,
                      perSecond: perSecond - declinesPerSecond,
                      reportAcks: false,
                    },
                  }),
                ]);
                return { measured, cpu: stopMeter() };
              });
              const { p50, max } = spreadOf(measured);
              say(`round ${n}: queue on ${backend}: p50 ${p50.toFixed(0)} ms, max ${max.toFixed(0)} ms`);
              all.push(...measured);
            }
            return all;
          },
        );
        const { p50, p99, max } = spreadOf(delays);
        rows.push({
          queue: backend,
          alerts: delays.length,
          "p50 ms": p50.toFixed(0),
          "p99 ms": p99.toFixed(0),
          "max ms": max.toFixed(0),
        });
        targets.push({
          what: `p99 from the 2xx to the alert at ${perSecond} events/s, queue on ${backend}`,
          wanted: `< ${wantedP99Ms} ms`,
          measured: `${p99.toFixed(0)} ms`,
          reached: p99 < wantedP99Ms,
        });
      }
    } finally {
      await channel.close();
    }
    return { rows, targets, notes: ["the spread is that of all rounds together"] };
  },
};

interface AlertChannel {
  url: string;
  /** When the alert of each order arrived, in time of `performance.now()`. */
  cameAt: Map<string, number>;
  close(): Promise<void>;
}

async function startChannel(): Promise<AlertChannel> {
  const cameAt = new Map<string, number>();
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const nowMs = performance.now();
      const orderId = /"dedup_key":"decline:([^"#]+)/.exec(body)?.[1];
      if (orderId !== undefined && !cameAt.has(orderId)) cameAt.set(orderId, nowMs);
      response.end("{}");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/alerts`,
    cameAt,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** One channel, without digests, and with a storm limit above this rate of declines. */
async function alertEnvironment(directory: string, url: string): Promise<Record<string, string>> {
  const settings = {
    channels: {
      bench: { kind: "webhook", urlFrom: "ALERT_BENCH_URL", secretFrom: "ALERT_BENCH_SECRET" },
    },
    defaultChannels: ["bench"],
    destinations: { privateHosts: ["127.0.0.1"] },
    digests: { softDeclines: "off" },
    rules: { decline_storm: { enabled: false } },
  };
  await mkdir(directory, { recursive: true });
  const file = join(directory, "alerts.jsonc");
  await writeFile(file, JSON.stringify(settings));
  return { ALERT_SETTINGS_FILE: file, ALERT_BENCH_URL: url, ALERT_BENCH_SECRET: benchSecret };
}

/** Sends declines at an even rate, waits for their alerts, and returns how long each took. */
async function sendDeclines(
  { port, seconds, seed }: { port: number; seconds: number; seed: string },
  { cameAt }: AlertChannel,
): Promise<number[]> {
  const startMs = performance.now();
  const sent = Array.from({ length: Math.ceil(seconds * declinesPerSecond) }, async (_, n) => {
    await sleep(startMs + (n * 1_000) / declinesPerSecond - performance.now());
    return sendDecline(port, seed, n);
  });
  const acknowledged = await Promise.all(sent);
  const deadlineMs = performance.now() + allWithinMs;
  while (!acknowledged.every(({ orderId }) => cameAt.has(orderId))) {
    if (performance.now() > deadlineMs) throw new Error("not every decline became an alert");
    await sleep(50);
  }
  return acknowledged.map(({ orderId, atMs }) => (cameAt.get(orderId) ?? 0) - atMs);
}

const scheme = signatureScheme("svc");

async function sendDecline(port: number, seed: string, n: number): Promise<{ orderId: string; atMs: number }> {
  const at = new Date();
  const { id, orderId, body } = declinedOrderEvent(seed, n, at);
  const signature = scheme.sign({ body, secrets: [benchSecret], at, messageId: id });
  const answer = await fetch(`http://127.0.0.1:${port}/webhooks`, {
    method: "POST",
    headers: { "content-type": "application/json", ...signature },
    body,
  });
  const atMs = performance.now();
  await answer.arrayBuffer();
  if (answer.status !== 200) throw new Error(`a decline was answered with ${answer.status}`);
  return { orderId, atMs };
}
