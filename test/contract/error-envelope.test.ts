import { expect, it } from "vitest";
import { errorEnvelope, errorEnvelopeSchema } from "../../src/core/contract/error-envelope.ts";

it("writes every key of the service's error form", () => {
  const body = errorEnvelope({
    type: "webhook_error",
    code: "webhook_signature_failed",
    message: "The signature does not match.",
    requestId: "req_1",
  });
  expect(body).toEqual({
    error: {
      type: "webhook_error",
      code: "webhook_signature_failed",
      message: "The signature does not match.",
      param: null,
      request_id: "req_1",
      field_errors: [],
    },
  });
  expect(errorEnvelopeSchema.parse(body)).toEqual(body);
});

it("reads an error of an unknown type with fields left out and fields added", () => {
  const body = {
    error: { type: "lunar_error", code: "eclipse", message: "", hint: 1 },
    more: true,
  };
  expect(errorEnvelopeSchema.parse(body)).toEqual(body);
});
