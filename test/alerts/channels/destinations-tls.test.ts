import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createHttpPost } from "../../../src/alerts/channels/http-post.ts";
import { wallClock } from "../../../src/platform/clock.ts";
import { createDestinationGuard } from "../../../src/platform/http/destination-guard.ts";

/** A key and a certificate for `localhost` that nobody has reason to trust. */
function selfSigned(): { key: Buffer; cert: Buffer } {
  const directory = mkdtempSync(join(tmpdir(), "tallyhook-tls-"));
  try {
    const [key, cert] = [join(directory, "key"), join(directory, "cert")];
    const made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    const named = ["-subj", "/CN=localhost", "-days", "1", "-keyout", key, "-out", cert];
    execFileSync("openssl", ["req", "-x509", ...made, ...named], { stdio: "ignore" });
    return { key: readFileSync(key), cert: readFileSync(cert) };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;

test.skipIf(!hasOpenssl)(
  "a server whose certificate is not trusted gets nothing, though its host is allowed",
  async () => {
    const asked: string[] = [];
    const requests: string[] = [];
    const server = createServer({
      ...selfSigned(),
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
    const guard = createDestinationGuard(
      { allowedHosts: [], privateHosts: ["localhost"] },
      async () => [{ address: "127.0.0.1", family: 4 }],
    );
    const http = createHttpPost(
      { guard, clock: wallClock },
      new URL(`https://localhost:${port}/hunter2`),
    );
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
