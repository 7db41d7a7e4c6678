import { createServer } from "node:http";
import type { RequestListener } from "node:http";
import type { AddressInfo } from "node:net";

import { afterAll, expect, test } from "vitest";

import { createTransport } from "../../src/sandbox/delivery/transport.ts";
import { startReceiver } from "./harness.ts";

const transport = createTransport(250);
const closing: (() => void)[] = [];
afterAll(async () => {
  await transport.close();
  for (const close of closing) close();
});

const post = (url: string) => transport.post(url, {}, Buffer.from("{}"));

async function listening(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

test("[A] 509 an answer within the limit counts, one after it does not; the limit is wall time", async () => {
  const prompt = await startReceiver(() => 204);
  expect(await post(prompt.url)).toEqual({ status: 204, error: null });
  let answerLate = () => {};
  const late = await startReceiver(
    () =>
      new Promise((resolve) => {
        answerLate = () => resolve(200);
      }),
  );
  expect(await post(late.url)).toEqual({ status: null, error: "no answer within 0.25 s" });
  answerLate();
  await Promise.all([prompt.close(), late.close()]);
});

test("a status that came in time counts, and a body without end holds nothing up", async () => {
  const url = await listening((_request, response) => {
    response.writeHead(200);
    response.write("never");
  });
  expect(await post(url)).toEqual({ status: 200, error: null });
});
