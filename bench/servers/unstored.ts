/**
 * The receiver's own HTTP side over an inbox that stores nothing. The difference to the whole receiver is the cost of
 * durability; the difference to bare Koa is the cost of the rest.
 */
import { type ServerResponse, createServer } from "node:http";
import { defaultEnvelopePaths } from "../../src/core/contract/event-envelope.ts";
import { signatureScheme } from "../../src/core/contract/signature/signature-scheme.ts";
import { wallClock } from "../../src/platform/clock.ts";
import { createLog } from "../../src/platform/log.ts";
import { createReceiverCounters } from "../../src/core/receiver/counters.ts";
import { createDeadlines, defaultReceiverLimits } from "../../src/core/receiver/limits.ts";
import { createApp } from "../../src/core/receiver/server.ts";
import { webhookSteps } from "../../src/core/receiver/webhook.ts";
import { serve } from "./serve.ts";
import { benchSigningSecret } from "./verify.ts";

const counters = createReceiverCounters();
const log = createLog({ level: "warn", name: "unstored" });
const webhook = webhookSteps(
  {
    appender: { append: ({ eventId }) => Promise.resolve({ eventId, duplicate: false }) },
    secrets: {
      current: () => [benchSigningSecret],
      refresh: () => Promise.resolve(true),
      markUsed: () => {},
    },
    scheme: signatureScheme("svc"),
    clock: wallClock,
    log,
    warnRateLimited: () => {},
    counters,
    deadlines: createDeadlines<ServerResponse>(() => {}, { limitMs: 10_000, tickMs: 250 }),
  },
  {
    maxBodyBytes: 1_048_576,
    maxHeldBodyBytes: 67_108_864,
    toleranceSeconds: 300,
    places: defaultEnvelopePaths,
    limits: defaultReceiverLimits,
  },
);
const readiness = () => Promise.resolve({ status: "ok" as const, reasons: [] });
const handle = createApp({ webhook, readiness, counters, log }).callback();
serve(createServer((request, response) => void handle(request, response)));
