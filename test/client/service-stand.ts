import { type IncomingMessage, type RequestListener, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createServiceClock } from "../../src/platform/clock.ts";
import { createLog } from "../../src/platform/log.ts";
import { seededRandom } from "../../src/platform/random.ts";
import {
  type ServiceClient,
  type ServiceClientOptions,
  createServiceClient,
} from "../../src/core/client/service-client.ts";
import { type TestTime, createTestTime } from "./test-time.ts";

export const apiKey = "svc_test_sk_do_not_show_0123456789";

export interface ServiceStand {
  client: ServiceClient;
  time: TestTime;
  serviceNow: () => Date;
  /** Every line logged so far. */
  logged: () => string;
  /** Takes the server away from under the client. */
  stopServer: () => Promise<void>;
  close(): Promise<void>;
}

/** A client and the HTTP server it talks to, on a free port of the loopback. */
export async function standUp(
  listener: RequestListener,
  options: Partial<ServiceClientOptions> & { basePath?: string; apiKey?: string } = {},
): Promise<ServiceStand> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const stopServer = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  const { basePath = "", apiKey: key = apiKey, ...clientOptions } = options;
  const time = createTestTime();
  const serviceClock = createServiceClock(time.clock);
  const lines: string[] = [];
  const log = createLog({
    level: "trace",
    name: "test",
    destination: { write: (line) => void lines.push(line) },
  });
  const client = createServiceClient(
    {
      baseUrl: `http://127.0.0.1:${port}${basePath}`,
      apiKey: key,
      log,
      wallClock: time.clock,
      serviceClock,
      random: seededRandom("client"),
      sleep: time.sleep,
    },
    clientOptions,
  );
  return {
    client,
    time,
    serviceNow: () => serviceClock.now(),
    logged: () => lines.join(""),
    stopServer,
    async close() {
      await client.close();
      await stopServer();
    },
  };
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

export function serviceError(code: string, message = "No.", requestId = "req_body"): unknown {
  return {
    error: {
      type: "invalid_request_error",
      code,
      message,
      param: null,
      request_id: requestId,
      field_errors: [],
    },
  };
}

export async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
