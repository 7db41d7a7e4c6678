import type { FieldError } from "../service/error-envelope.ts";

/** A request that the service turns down, by its stable code. One table has the status and type of each code. */
export class Refusal extends Error {
  readonly code: string;
  readonly param: string | null;
  readonly fieldErrors: FieldError[];
  /** Sent with the answer, such as `Retry-After`. */
  headers: Readonly<Record<string, string>> = {};

  constructor(code: string, message: string, param: string | null = null, fields?: FieldError[]) {
    super(message);
    this.name = "Refusal";
    this.code = code;
    this.param = param;
    this.fieldErrors = fields ?? [];
  }
}

/** The gateway did not answer the charge of an order, which stays pending: a repeat with the same key completes it (statement 300). */
export class GatewayTimeout extends Refusal {
  readonly orderId: string;

  constructor(orderId: string) {
    super("gateway_error", "The gateway did not answer in time: repeat with the same key.");
    this.name = "GatewayTimeout";
    this.orderId = orderId;
  }
}

export function notFound(resource: string, param: string | null = null): Refusal {
  return new Refusal("resource_not_found", `No such ${resource}.`, param);
}

export function invalidValue(param: string, message: string): Refusal {
  return new Refusal("invalid_value", message, param, [
    { field: param, code: "invalid_value", message },
  ]);
}
