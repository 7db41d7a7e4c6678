import { randomBytes } from "node:crypto";
import { type IncomingMessage, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { signatureScheme } from "../../../../core/contract/signature/signature-scheme.ts";
import { wallClock } from "../../../../platform/clock.ts";
import { listen } from "../../../../platform/http/listen.ts";

/** A message as the channel `webhook` sends it. */
export interface Page {
  action: "trigger" | "acknowledge" | "resolve";
  key: string;
  rule: string;
  severity: string;
  title: string;
  advice: string;
  runbook: string;
  facts: readonly { label: string; value: string }[];
}

/** The team's pager: it receives the alerts as they are sent, over HTTP and signed. */
export interface Pager {
  /** Used in the settings of the channel. */
  url: string;
  secret: string;
  pages: readonly Page[];
  /** The first page from this place on that fits. Null at the limit; throws the signal's reason. */
  wait(
    fits: (page: Page) => boolean,
    options: {
      from: number;
      limitMs: number;
      signal: AbortSignal;
      meanwhile?: () => Promise<void>;
    },
  ): Promise<Page | null>;
  close(): Promise<void>;
}

const mostBytes = 1_000_000;
const lookEveryMs = 200;

/** Listens on loopback, on a free port. */
export async function startPager(): Promise<Pager> {
  const scheme = signatureScheme("svc");
  const secret = randomBytes(32).toString("hex");
  const pages: Page[] = [];
  const server = createServer((request, response) => {
    void readBody(request).then(
      (body) => {
        const isOurs = scheme.verify({
          rawHeaders: request.rawHeaders,
          body,
          secrets: [{ id: "pager", value: secret, notBefore: null, notAfter: null }],
          now: wallClock.now(),
          toleranceSeconds: 300,
        }).ok;
        if (isOurs) pages.push(pageOf(body));
        response.writeHead(isOurs ? 200 : 401).end();
      },
      () => response.destroy(),
    );
  });
  await listen(server, { host: "127.0.0.1", port: 0, hostVariable: "HOST", portVariable: "PORT" });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    secret,
    pages,
    async wait(fits, { from, limitMs, signal, meanwhile }) {
      const endsMs = wallClock.now().getTime() + limitMs;
      for (;;) {
        signal.throwIfAborted();
        const found = pages.slice(from).find(fits);
        if (found !== undefined) return found;
        if (wallClock.now().getTime() > endsMs) return null;
        await meanwhile?.();
        await sleep(lookEveryMs, undefined, { signal }).catch(() => signal.throwIfAborted());
      }
    },
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > mostBytes) throw new Error("an alert is too long");
    parts.push(part);
  }
  return Buffer.concat(parts);
}

interface Sent {
  data: { object: Omit<Page, "key"> & { dedup_key: string } };
}

/** The sender is our own: its signature holds. */
function pageOf(body: Buffer): Page {
  const { dedup_key: key, ...page } = (JSON.parse(body.toString()) as Sent).data.object;
  return { ...page, key };
}
