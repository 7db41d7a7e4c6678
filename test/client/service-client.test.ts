import type { IncomingMessage, RequestListener } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import type { ServiceClient, ServiceClientOptions } from "../../src/core/client/service-client.ts";
import {
  ServiceAnswerError,
  ServiceError,
  ServiceRefusedError,
  ServiceUnavailableError,
} from "../../src/core/client/service-errors.ts";
import { serviceVersion } from "../../src/core/contract/endpoint.ts";
import { getAccount } from "../../src/core/contract/resources/account.ts";
import { listCustomers } from "../../src/core/contract/resources/customers.ts";
import { createOrder, getOrder, listOrders } from "../../src/core/contract/resources/orders.ts";
import { pauseSubscription } from "../../src/core/contract/resources/subscriptions.ts";
import {
  createWebhookEndpoint,
  deleteWebhookEndpoint,
  updateWebhookEndpoint,
} from "../../src/core/contract/resources/webhook-endpoints.ts";
import { type ServiceStand, apiKey, readText, sendJson, serviceError, standUp } from "./service-stand.ts";

const wanted = { customer_id: "c1", payment_method_id: "p1", items: [] };

const stands: ServiceStand[] = [];

async function stand(
  listener: RequestListener,
  options: Partial<ServiceClientOptions> & { basePath?: string; apiKey?: string } = {},
): Promise<ServiceStand> {
  const made = await standUp(listener, options);
  stands.push(made);
  return made;
}

/** A server that gives the answers in turn, the last one for ever. */
function inTurn(...answers: RequestListener[]): RequestListener & { asked: IncomingMessage[] } {
  const asked: IncomingMessage[] = [];
  const listener: RequestListener = (request, response) => {
    const answer = answers[Math.min(asked.length, answers.length - 1)];
    asked.push(request);
    answer?.(request, response);
  };
  return Object.assign(listener, { asked });
}

const ok: RequestListener = (_request, response) => sendJson(response, 200, { id: "o1" });

function fails(status: number, code = "internal_error", headers = {}): RequestListener {
  return (_request, response) => sendJson(response, status, serviceError(code), headers);
}

async function errorOf(promise: Promise<unknown>): Promise<ServiceError> {
  const error = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ServiceError);
  return error as ServiceError;
}

afterEach(async () => {
  await Promise.all(stands.splice(0).map((made) => made.close()));
});

describe("a read", () => {
  it("asks below /v1 with the key, and answers status, body, date and request id", async () => {
    const listener = inTurn((_request, response) =>
      sendJson(
        response,
        200,
        { id: "o1" },
        {
          date: "Wed, 01 Jan 2031 10:00:00 GMT",
          "x-request-id": "req_1",
        },
      ),
    );
    const { client, serviceNow } = await stand(listener, { basePath: "/shop/" });
    const answer = await client.get(listOrders, {
      query: { expand: "transactions", "created_at[gte]": "x" },
    });
    expect(answer).toEqual({
      status: 200,
      body: { id: "o1" },
      date: new Date("2031-01-01T10:00:00Z"),
      requestId: "req_1",
    });
    const [request] = listener.asked;
    expect(request?.url).toBe("/shop/v1/orders?expand=transactions&created_at%5Bgte%5D=x");
    expect(request?.headers.authorization).toBe(`Bearer ${apiKey}`);
    expect(serviceNow()).toEqual(new Date("2031-01-01T10:00:00Z"));
  });

  it("asks for the version that the program was written for, and gives that up where the service has none such", async () => {
    const listener = inTurn(ok, fails(400, "invalid_api_version"), ok);
    const { client, logged } = await stand(listener);
    const statuses = [];
    for (const id of ["1", "2", "3"]) {
      statuses.push((await client.get(getOrder, { params: { id } })).status);
    }
    expect(statuses).toEqual([200, 200, 200]);
    expect(listener.asked.map(({ url, headers }) => [url, headers["svc-version"]])).toEqual([
      ["/v1/orders/1", serviceVersion],
      ["/v1/orders/2", serviceVersion],
      ["/v1/orders/2", undefined],
      ["/v1/orders/3", undefined],
    ]);
    expect(logged()).toContain("does not serve this version");
  });

  it("repeats a write without the version once, with the same idempotency key", async () => {
    const listener = inTurn(fails(400, "api_version_sunset"), ok);
    const { client } = await stand(listener);
    const idempotencyKey = "3f2b8c1e-0000-4000-8000-000000000000";
    expect((await client.send(createOrder, { body: wanted }, { idempotencyKey })).status).toBe(200);
    const again = await stand(fails(400, "invalid_api_version"));
    await expect(again.client.send(createOrder, { body: wanted })).rejects.toThrow(/invalid_api_version/);
    expect(listener.asked.map(({ headers }) => headers["x-svc-idempotency-key"])).toEqual([
      idempotencyKey,
      idempotencyKey,
    ]);
  });

  it("leaves out query parameters that are undefined", async () => {
    const listener = inTurn(ok);
    const { client } = await stand(listener);
    await client.get(listCustomers, { query: { q: undefined, limit: "5", deleted: "true" } });
    expect(listener.asked[0]?.url).toBe("/v1/customers?limit=5&deleted=true");
  });

  it("answers the absence of an object with its date, as a value", async () => {
    const { client } = await stand(fails(404, "resource_not_found"));
    const answer = await client.get(getOrder, { params: { id: "o1" } });
    expect(answer.status).toBe(404);
    expect(answer.requestId).toBe("req_body");
  });

  it.each<[string, RequestListener, string | null]>([
    ["a page", (_, response) => response.writeHead(404).end("<h1>no such page</h1>"), null],
    ["JSON of a proxy", (_, response) => sendJson(response, 404, { error: "no route" }), null],
    ["another code", fails(404, "route_not_found"), "route_not_found"],
  ])("does not take another 404 for the absence of an object: %s", async (_, listener, code) => {
    const { client } = await stand(listener);
    const error = await errorOf(client.get(getOrder, { params: { id: "o1" } }));
    expect(error).toBeInstanceOf(ServiceRefusedError);
    expect(error).toMatchObject({ status: 404, code });
  });

  it("falls back on the service's clock where an answer has no date", async () => {
    const { client, serviceNow } = await stand((_request, response) => {
      response.sendDate = false;
      sendJson(response, 200, {});
    });
    expect((await client.get(listOrders, {})).date).toEqual(serviceNow());
  });

  it("does not set the service's clock by a proxy's error page", async () => {
    const { client, serviceNow, time } = await stand(
      inTurn((_request, response) => {
        response.writeHead(502, { date: "Wed, 01 Jan 2031 10:00:00 GMT" }).end("<h1>bad</h1>");
      }),
    );
    await errorOf(client.get(listOrders, {}));
    expect(serviceNow()).toEqual(time.clock.now());
  });
});

describe("a failing service", () => {
  it("is asked again after 5xx, with growing waits", async () => {
    const listener = inTurn(fails(500), fails(503), fails(502), ok);
    const { client, time } = await stand(listener);
    expect((await client.get(getOrder, { params: { id: "o1" } })).status).toBe(200);
    expect(listener.asked).toHaveLength(4);
    const [first = 0, second = 0, third = 0] = time.sleeps;
    expect(time.sleeps).toHaveLength(3);
    expect(first).toBeGreaterThanOrEqual(250);
    expect(second).toBeGreaterThan(first);
    expect(third).toBeGreaterThan(second);
  });

  it("is given up after the last try, with its status and request id", async () => {
    const listener = inTurn(fails(503, "service_unavailable"));
    const { client } = await stand(listener);
    const error = await errorOf(client.get(getOrder, { params: { id: "o1" } }));
    expect(error).toBeInstanceOf(ServiceUnavailableError);
    expect(listener.asked).toHaveLength(6);
    expect(error.request).toEqual({
      method: "GET",
      path: "/orders/o1",
      attempts: 6,
      status: 503,
      requestId: "req_body",
    });
    expect(error.message).toContain("6 tries, request id req_body");
  });

  it("is not asked again what is not implemented", async () => {
    const listener = inTurn(fails(501, "not_implemented"));
    const { client } = await stand(listener);
    await errorOf(client.send(pauseSubscription, { params: { id: "s" } }));
    expect(listener.asked).toHaveLength(1);
  });

  it("is asked again when it cuts the connection", async () => {
    const listener = inTurn((request) => request.socket.destroy(), ok);
    const { client } = await stand(listener);
    expect((await client.get(getOrder, { params: { id: "o1" } })).status).toBe(200);
  });

  it("is asked again when it does not answer in time", async () => {
    const listener = inTurn(() => undefined, ok);
    const { client } = await stand(listener, { tryTimeoutMs: 100 });
    expect((await client.get(getOrder, { params: { id: "o1" } })).status).toBe(200);
    expect(listener.asked).toHaveLength(2);
  });

  it("is asked again when its answer stops half way", async () => {
    const listener = inTurn((_request, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.write('{"id":');
    }, ok);
    const { client } = await stand(listener, { tryTimeoutMs: 100 });
    expect((await client.get(getOrder, { params: { id: "o1" } })).body).toEqual({ id: "o1" });
  });

  it("is unavailable when nobody listens", async () => {
    const { client, stopServer } = await stand(ok);
    await stopServer();
    const error = await errorOf(client.get(listOrders, {}));
    expect(error).toBeInstanceOf(ServiceUnavailableError);
    expect(error.message).toContain("could not be reached (ECONNREFUSED)");
    expect(error.exitCode).toBe(2);
    expect(error.request.attempts).toBe(6);
  });
});

describe("429", () => {
  const limited = (headers: Record<string, string>): RequestListener => fails(429, "rate_limit_exceeded", headers);

  it("is waited out as many seconds as Retry-After says, plus jitter", async () => {
    const { client, time } = await stand(inTurn(limited({ "retry-after": "7" }), ok));
    await client.get(listOrders, {});
    expect(time.elapsedMs()).toBeGreaterThanOrEqual(7_000);
    expect(time.elapsedMs()).toBeLessThan(7_800);
  });

  it("is waited out until the date Retry-After says, by the service's own clock", async () => {
    const headers = {
      date: "Wed, 01 Jan 2031 10:00:00 GMT",
      "retry-after": "Wed, 01 Jan 2031 10:00:20 GMT",
    };
    const { client, time } = await stand(inTurn(limited(headers), ok));
    await client.get(listOrders, {});
    expect(time.elapsedMs()).toBeGreaterThanOrEqual(20_000);
    expect(time.elapsedMs()).toBeLessThan(22_100);
  });

  it("that outlasts the call ends it at once and says how long to wait", async () => {
    const listener = inTurn(limited({ "retry-after": "3600" }), ok);
    const { client, time } = await stand(listener);
    expect(await errorOf(client.get(listOrders, {}))).toMatchObject({ retryAfterMs: 3_600_000 });
    const next = await errorOf(client.get(listCustomers, {}));
    expect(next).toBeInstanceOf(ServiceUnavailableError);
    expect(next).toMatchObject({ retryAfterMs: 3_600_000, request: { attempts: 0 } });
    expect(listener.asked).toHaveLength(1);
    time.advance(3_600_000);
    expect((await client.get(listOrders, {})).status).toBe(200);
  });

  it("slows everybody down", async () => {
    const { client, time } = await stand(inTurn(ok, limited({ "retry-after": "5" }), ok));
    await client.get(listOrders, {});
    await client.get(listOrders, {});
    const before = time.elapsedMs();
    await Promise.all([client.get(listOrders, {}), client.get(listOrders, {})]);
    expect(time.elapsedMs()).toBeGreaterThan(before);
  });
});

describe("a refusal", () => {
  it.each([
    [400, "validation_error"],
    [401, "invalid_api_key"],
    [403, "insufficient_permissions"],
    [409, "email_already_exists"],
    [422, "field_locked"],
  ])("%i is final", async (status, code) => {
    const listener = inTurn(fails(status, code));
    const { client } = await stand(listener);
    const error = await errorOf(client.get(listOrders, {}));
    expect(error).toBeInstanceOf(ServiceRefusedError);
    expect(error).toMatchObject({ status, code, request: { attempts: 1, requestId: "req_body" } });
    expect(error.exitCode).toBe(status === 401 || status === 403 ? 2 : 70);
    expect(listener.asked).toHaveLength(1);
  });

  it("names the fields", async () => {
    const { client } = await stand((_request, response) =>
      sendJson(response, 400, {
        error: {
          type: "invalid_request_error",
          code: "validation_error",
          message: "Bad\nfields",
          param: "url",
          request_id: "req_2",
          field_errors: [{ field: "url", code: "invalid_format", message: "HTTPS only" }],
        },
      }),
    );
    const error = await errorOf(client.send(createWebhookEndpoint, { body: { url: "x", enabled_events: ["*"] } }));
    expect(error).toMatchObject({
      param: "url",
      fieldErrors: [{ field: "url", code: "invalid_format", message: "HTTPS only" }],
    });
    expect(error.message).toBe(
      "POST /webhook_endpoints: refused with 400 validation_error: Bad fields (1 try, request id req_2)",
    );
  });
});

describe("a write", () => {
  it("sends its body and its idempotency key", async () => {
    const bodies: string[] = [];
    const listener = inTurn((request, response) => {
      void readText(request).then((text) => {
        bodies.push(text);
        sendJson(response, 201, { id: "w1" });
      });
    });
    const { client } = await stand(listener);
    const idempotencyKey = "0b0c6a3e-58a7-4c65-9a3c-0d1f7d1b8b11";
    const body = { url: "https://x", enabled_events: ["*"] };
    await client.send(createWebhookEndpoint, { body }, { idempotencyKey });
    const params = { id: "w1" };
    await client.send(updateWebhookEndpoint, { params, body: { status: "disabled" } });
    await client.send(deleteWebhookEndpoint, { params });
    const [post, patch, remove] = listener.asked;
    expect(post?.headers["x-svc-idempotency-key"]).toBe(idempotencyKey);
    expect(post?.headers["content-type"]).toBe("application/json");
    expect(patch?.headers["x-svc-idempotency-key"]).toBeUndefined();
    expect([post?.method, patch?.method, remove?.method]).toEqual(["POST", "PATCH", "DELETE"]);
    expect(bodies).toEqual([JSON.stringify(body), '{"status":"disabled"}', ""]);
  });

  const troubles: [string, RequestListener][] = [
    ["500", fails(500)],
    ["429", fails(429, "rate_limit_exceeded", { "retry-after": "1" })],
    ["a cut connection", (request) => request.socket.destroy()],
    ["an unreadable answer", (_request, response) => response.end("<html>")],
  ];

  it.each(troubles)("is not repeated after %s without its key", async (_case, trouble) => {
    const writes: ((client: ServiceClient) => Promise<unknown>)[] = [
      (client) => client.send(createOrder, { body: wanted }),
      (client) => client.send(updateWebhookEndpoint, { params: { id: "w1" }, body: {} }),
      (client) => client.send(deleteWebhookEndpoint, { params: { id: "w1" } }),
    ];
    for (const write of writes) {
      const listener = inTurn(trouble, ok);
      await errorOf(write((await stand(listener)).client));
      expect(listener.asked).toHaveLength(1);
    }
  });

  it.each(troubles)("is repeated after %s with its key, the same one", async (_case, trouble) => {
    const listener = inTurn(trouble, ok);
    const { client } = await stand(listener);
    const answer = await client.send(createOrder, { body: wanted }, { idempotencyKey: "k" });
    expect(answer.status).toBe(200);
    expect(listener.asked.map((each) => each.headers["x-svc-idempotency-key"])).toEqual(["k", "k"]);
  });

  it("is refused when what it names is absent", async () => {
    const { client } = await stand(fails(404, "resource_not_found"));
    const error = await errorOf(client.send(deleteWebhookEndpoint, { params: { id: "w1" } }));
    expect(error).toMatchObject({ status: 404, code: "resource_not_found" });
  });
});

describe("an answer that is none of the service", () => {
  it.each([
    ["HTML", "<html>hello</html>"],
    ["truncated JSON", '{"id":"o1","total":12'],
    ["nothing", ""],
    ["invalid UTF-8", Buffer.from([0x22, 0xff, 0x22])],
  ])("%s is named, with the request id", async (_case, text) => {
    const { client } = await stand((_request, response) => {
      response.writeHead(200, { "x-request-id": "req_9" }).end(text);
    });
    const error = await errorOf(client.get(getOrder, { params: { id: "o1" } }));
    expect(error).toBeInstanceOf(ServiceAnswerError);
    expect(error.message).toContain("not JSON, or was cut short");
    expect(error.request).toMatchObject({ status: 200, requestId: "req_9", attempts: 6 });
    expect(error.message).not.toContain('o1"');
  });

  it("cut short below its announced length is named, with the request id", async () => {
    const { client } = await stand((_request, response) => {
      response.writeHead(200, { "content-length": "1000", "x-request-id": "req_8" });
      response.write('{"id":"o1"}', () => response.socket?.destroy());
    });
    const error = await errorOf(client.get(getOrder, { params: { id: "o1" } }));
    expect(error).toBeInstanceOf(ServiceAnswerError);
    expect(error.message).toContain("was cut short");
    expect(error.request.requestId).toBe("req_8");
  });

  it("longer than allowed is not read to its end, nor asked for again", async () => {
    const listener = inTurn((_request, response) => {
      response.writeHead(200, { "x-request-id": "req_7" });
      const pour = (): void => {
        while (!response.destroyed && response.write("x".repeat(65_536)));
      };
      response.on("drain", pour);
      pour();
    });
    const { client } = await stand(listener, { maxAnswerBytes: 100_000 });
    const error = await errorOf(client.get(listOrders, {}));
    expect(error).toBeInstanceOf(ServiceAnswerError);
    expect(error.message).toContain("longer than allowed");
    expect(listener.asked).toHaveLength(1);
  });

  it("a redirect is not followed", async () => {
    const listener = inTurn((_request, response) => {
      response.writeHead(302, { location: "/v1/elsewhere" }).end();
    });
    const { client } = await stand(listener);
    const error = await errorOf(client.get(listOrders, {}));
    expect(error).toBeInstanceOf(ServiceAnswerError);
    expect(error.message).toContain("redirect (302)");
    expect(listener.asked).toHaveLength(1);
  });
});

describe("the time of a call", () => {
  it("ends at its deadline, whatever it is doing", async () => {
    const { client } = await stand(() => undefined);
    const error = await errorOf(client.get(listOrders, {}, { deadlineMs: 100 }));
    expect(error).toBeInstanceOf(ServiceUnavailableError);
    expect(error.message).toContain("in the time allowed");
  });

  it("ends with the caller's signal, for the caller's reason", async () => {
    const { client } = await stand(() => undefined);
    const abort = new AbortController();
    const call = client.get(listOrders, {}, { signal: abort.signal });
    abort.abort(new Error("shutting down"));
    await expect(call).rejects.toThrow("shutting down");
  });

  it("ends when the client is closed, waiting or under way", async () => {
    const { client } = await stand(() => undefined, { maxConcurrent: 1 });
    const calls = [client.get(listOrders, {}), client.get(listOrders, {})];
    const ended = Promise.allSettled(calls);
    await client.close();
    await client.close();
    for (const outcome of await ended) {
      expect(outcome).toMatchObject({ status: "rejected" });
      expect(String((outcome as PromiseRejectedResult).reason)).toContain("was closed");
    }
    await expect(client.get(listOrders, {})).rejects.toThrow("was closed");
  });
});

describe("lanes", () => {
  it("ask for single objects before the pages of a walk", async () => {
    const paths: (string | undefined)[] = [];
    let release = (): void => undefined;
    const { client } = await stand(
      (request, response) => {
        paths.push(request.url);
        if (paths.length === 1) release = () => sendJson(response, 200, {});
        else sendJson(response, 200, { data: [], has_more: false });
      },
      { maxConcurrent: 1 },
    );
    const first = client.get(getAccount, {});
    while (paths.length === 0) await new Promise((resolve) => setImmediate(resolve));
    const pages = client.listPages(listOrders, {})[Symbol.asyncIterator]().next();
    const fetched = client.get(getOrder, { params: { id: "o1" } });
    release();
    await Promise.all([first, pages, fetched]);
    expect(paths).toEqual(["/v1/account", "/v1/orders/o1", "/v1/orders"]);
  });
});

describe("the key", () => {
  it("is in none of an answer's fields that are logged or told, whatever the key looks like", async () => {
    const odd = "nothing/like+a key: 0123";
    const header = `Bearer ${odd}`;
    const basic = Buffer.from(`api:${odd}`).toString("base64");
    const error = {
      type: header,
      code: header,
      message: `${"m".repeat(5_000)} ${basic}`,
      param: encodeURIComponent(odd),
      request_id: header,
      field_errors: Array.from({ length: 900 }, () => ({ field: odd, code: odd, message: basic })),
    };
    for (const status of [400, 503]) {
      const echo: RequestListener = (_request, response) =>
        sendJson(response, status, { error }, { "x-request-id": odd });
      const made = await stand(inTurn(echo), { apiKey: odd });
      const thrown = await errorOf(made.client.get(getOrder, { params: { id: "o1" } }));
      const shown = `${thrown.stack} ${JSON.stringify(thrown)} ${made.logged()}`;
      for (const form of [odd, encodeURIComponent(odd), basic.slice(8, -6)]) {
        expect(shown).not.toContain(form);
      }
      expect(thrown.message.length).toBeLessThan(1_000);
      expect(JSON.stringify(thrown).length).toBeLessThan(10_000);
    }
  });

  it("is in no log and in no error, even when the service echoes it", async () => {
    const echo: RequestListener = (_request, response) =>
      sendJson(response, 503, serviceError("internal_error", `key ${apiKey} is tired`));
    const made = await stand(inTurn(echo));
    const refused = await stand((_request, response) =>
      sendJson(response, 400, serviceError("invalid_value", `your key ${apiKey}`)),
    );
    const errors = [
      await errorOf(made.client.get(listCustomers, { query: { email: "ada@example.test" } })),
      await errorOf(refused.client.get(listOrders, {})),
    ];
    for (const error of errors) {
      expect(`${error.stack} ${JSON.stringify(error)}`).not.toContain(apiKey);
      expect(error.message).toContain("[redacted]");
    }
    expect(made.logged()).toContain("failed and is retried");
    expect(made.logged()).not.toContain(apiKey);
    expect(made.logged()).not.toContain("ada");
  });
});
