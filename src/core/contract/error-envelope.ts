import { z } from "zod";
import { openEnum } from "./wire-types.ts";

export const errorTypes = [
  "invalid_request_error",
  "authentication_error",
  "authorization_error",
  "rate_limit_error",
  "idempotency_error",
  "processing_error",
  "webhook_error",
] as const;

export type ErrorType = (typeof errorTypes)[number];

/** The body of every answer that is not 2xx. Branch on `code`, never on `message`. */
export const errorEnvelopeSchema = z.looseObject({
  error: z.looseObject({
    type: openEnum(errorTypes),
    code: z.string().describe("Stable, machine-readable"),
    message: z.string().describe("For people; may change"),
    param: z.string().nullish().describe("The field most responsible"),
    request_id: z.string().nullish(),
    field_errors: z
      .array(
        z.looseObject({
          field: z.string().nullish(),
          code: z.string().nullish(),
          message: z.string().nullish(),
        }),
      )
      .nullish(),
  }),
});

export type FieldError = { field: string; code: string; message: string };

export type ErrorEnvelope = {
  error: {
    type: ErrorType;
    code: string;
    message: string;
    param: string | null;
    request_id: string;
    field_errors: FieldError[];
  };
};

/** An error in the service's own form, every key present. */
export function errorEnvelope(error: {
  type: ErrorType;
  code: string;
  message: string;
  requestId: string;
  param?: string | null;
  fieldErrors?: FieldError[];
}): ErrorEnvelope {
  return {
    error: {
      type: error.type,
      code: error.code,
      message: error.message,
      param: error.param ?? null,
      request_id: error.requestId,
      field_errors: error.fieldErrors ?? [],
    },
  };
}
