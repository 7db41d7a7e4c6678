import { expect, test } from "vitest";
import { withServiceAdvice } from "../../../src/app/cli/context.ts";
import { loadConfig } from "../../../src/app/config/config.ts";
import { ServiceRefusedError, ServiceUnavailableError } from "../../../src/core/client/service-errors.ts";

const request = { method: "GET", path: "/orders", attempts: 6, requestId: null };
const unavailable = (status: number | null) =>
  new ServiceUnavailableError("could not be reached (ECONNREFUSED)", { ...request, status }, { retryAfterMs: null });
const remote = {
  SVC_BASE_URL: "https://api.example.com",
  SVC_API_KEY: "svc_test_sk_0123456789",
  DATABASE_URL: "embedded",
};

test.each([
  [{}, "No service is configured, so the sandbox at 127.0.0.1:4010 was asked"],
  [remote, "SVC_BASE_URL is https://api.example.com: check it"],
])("says which service gave no answer, and what to do: %j", (env, advice) => {
  const error = withServiceAdvice(unavailable(null), loadConfig(env).config);
  expect(error).toMatchObject({
    exitCode: 2,
    message: expect.stringContaining(`GET /orders: could not be reached (ECONNREFUSED) (6 tries). ${advice}`) as string,
  });
});

const refused = (status: number) =>
  new ServiceRefusedError(
    `refused with ${status}`,
    { ...request, status },
    { type: null, code: null, param: null, fieldErrors: [] },
  );

test.each([
  [401, "check SVC_API_KEY"],
  [403, "The key may not do this"],
])("says what to do about a key that is refused with %i", (status, advice) => {
  expect(withServiceAdvice(refused(status), loadConfig(remote).config)).toMatchObject({
    exitCode: 2,
    message: expect.stringMatching(new RegExp(`${advice}.*SVC_BASE_URL is https://api`)) as string,
  });
});

test.each([refused(404), unavailable(503), new Error("of another kind")])("leaves alone: %s", (error) => {
  expect(withServiceAdvice(error, loadConfig(remote).config)).toBe(error);
});
