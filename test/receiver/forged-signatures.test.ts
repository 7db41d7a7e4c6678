import { once } from "node:events";
import { type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { defaultEnvelopePaths } from "../../src/core/contract/event-envelope.ts";
import { signatureScheme } from "../../src/core/contract/signature/signature-scheme.ts";
import type { SignatureScheme } from "../../src/core/contract/signature/verification.ts";
import { wallClock } from "../../src/platform/clock.ts";
import { createLog } from "../../src/platform/log.ts";
import { createReceiverCounters } from "../../src/core/receiver/counters.ts";
import { createDeadlines, defaultReceiverLimits } from "../../src/core/receiver/limits.ts";
import { createApp } from "../../src/core/receiver/server.ts";
import { webhookSteps } from "../../src/core/receiver/webhook.ts";
import { signatureOf } from "./receiver-stand.ts";

const oldSecret = "whsec_the-secret-before-the-rotation";
const newSecret = "whsec_the-secret-after-the-rotation";

test("a forged request costs each secret one pass over its body, also where another secret has come meanwhile", async () => {
  const old = { id: "old", value: oldSecret, notBefore: null, notAfter: null };
  const fresh = { ...old, id: "new", value: newSecret };
  const passes: string[][] = [];
  const scheme: SignatureScheme = {
    ...signatureScheme("svc"),
    verify(request) {
      passes.push(request.secrets.map(({ id }) => id));
      return signatureScheme("svc").verify(request);
    },
  };
  let known = [old];
  let whenRead: (typeof old)[] = [old];
  const log = createLog({ level: "silent", name: "test" });
  const counters = createReceiverCounters();
  const deadlines = createDeadlines<ServerResponse>(() => {}, { limitMs: 60_000, tickMs: 1_000 });
  const webhook = webhookSteps(
    {
      appender: { append: async ({ eventId }) => ({ eventId, duplicate: false }) },
      secrets: {
        current: () => known,
        refresh: async () => {
          known = whenRead;
          return true;
        },
        markUsed: () => {},
      },
      scheme,
      clock: wallClock,
      log,
      warnRateLimited: () => {},
      counters,
      deadlines,
    },
    {
      maxBodyBytes: 1_024,
      maxHeldBodyBytes: 65_536,
      toleranceSeconds: 300,
      places: defaultEnvelopePaths,
      limits: defaultReceiverLimits,
    },
  );
  const readiness = () => Promise.resolve({ status: "ok" as const, reasons: [] });
  const handle = createApp({ webhook, readiness, counters, log }).callback();
  const server = createServer((req, res) => void handle(req, res));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const post = async (signer: string): Promise<number> => {
    const signature = signatureOf(Buffer.from("{}"), {
      secret: signer,
      t: Math.floor(Date.now() / 1_000),
    });
    const headers = { "svc-signature": signature };
    const url = `http://127.0.0.1:${port}/webhooks`;
    return (await fetch(url, { method: "POST", headers, body: "{}" })).status;
  };
  try {
    expect(await post("whsec_of-nobody-that-is-known-here")).toBe(401);
    expect(passes.splice(0)).toEqual([["old"]]);
    whenRead = [fresh, old];
    expect(await post(newSecret)).toBe(200);
    expect(passes.splice(0)).toEqual([["old"], ["new"]]);
    known = [];
    whenRead = [];
    expect(await post(newSecret)).toBe(401);
    expect(counters.rejected).toMatchObject({ no_match: 1, no_secret: 1 });
  } finally {
    deadlines.close();
    server.closeAllConnections();
    server.close();
  }
});
