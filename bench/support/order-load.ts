import { randomUUID } from "node:crypto";
import { openConnections } from "../load/connections.ts";

const connections = 64;
/** More than any sandbox handles in a second: requests are made before they are sent. */
const mostPerSecond = 12_000;

export interface OrderWish {
  port: number;
  apiKey: string;
  body: object;
}

/**
 * Sends `POST /orders` as fast as the answers come. Returns how many a second were answered 201. Throws if one was not.
 */
export async function postOrders(wish: OrderWish, seconds: number): Promise<number> {
  const body = JSON.stringify(wish.body);
  const requests = Array.from({ length: Math.ceil(seconds * mostPerSecond) }, () => orderRequest(wish.apiKey, body));
  const { free, close } = await openConnections(wish.port, connections);
  const startMs = performance.now();
  const endMs = startMs + seconds * 1000;
  let next = 0;
  let created = 0;
  await Promise.all(
    free.map(async (connection) => {
      while (performance.now() < endMs && next < requests.length) {
        const request = requests[next++] as Buffer;
        const status = await new Promise<number>((resolve) => connection.send(request, resolve));
        if (status !== 201) throw new Error(`POST /orders answered ${status}`);
        created += 1;
      }
    }),
  );
  const took = (performance.now() - startMs) / 1000;
  close();
  return created / took;
}

function orderRequest(apiKey: string, body: string): Buffer {
  return Buffer.from(
    [
      "POST /v1/orders HTTP/1.1",
      "host: 127.0.0.1",
      `authorization: Bearer ${apiKey}`,
      "content-type: application/json",
      `x-svc-idempotency-key: ${randomUUID()}`,
      `content-length: ${Buffer.byteLength(body)}`,
      "",
      body,
    ].join("\r\n"),
  );
}
