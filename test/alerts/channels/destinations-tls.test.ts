import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { createHttpPost } from "../../../src/parts/alerts/channels/http-post.ts";
import { wallClock } from "../../../src/platform/clock.ts";
import { createDestinationGuard } from "../../../src/platform/http/destination-guard.ts";
import { hasOpenssl, selfSigned } from "../../support/self-signed.ts";

test.skipIf(!hasOpenssl)(
  "a server whose certificate is not trusted gets nothing, though its host is allowed",
  async () => {
    const asked: string[] = [];
    const requests: string[] = [];
    const server = createServer({
      ...selfSigned("localhost"),
      SNICallback: (name, found) => {
        asked.push(name);
        found(null);
      },
    });
    server.on("request", ({ url }, response) => {
      requests.push(String(url));
      response.end();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const guard = createDestinationGuard({ allowedHosts: [], privateHosts: ["localhost"] }, async () => [
      { address: "127.0.0.1", family: 4 },
    ]);
    const http = createHttpPost({ guard, clock: wallClock }, new URL(`https://localhost:${port}/hunter2`));
    try {
      await expect(http.post("{}", {}, AbortSignal.timeout(60_000))).rejects.toMatchObject({
        message: "localhost could not be reached (DEPTH_ZERO_SELF_SIGNED_CERT)",
        isRetryable: true,
        mayHaveArrived: false,
      });
      expect(asked, "the host is named, not its address").toEqual(["localhost"]);
      expect(requests).toEqual([]);
    } finally {
      await http.close();
      server.closeAllConnections();
      server.close();
    }
  },
);
