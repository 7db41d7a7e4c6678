import type { FieldError } from "../service/error-envelope.ts";

/** A request that the service turns down, by its stable code. `http/errors.ts` knows status and type of each. */
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

export function notFound(resource: string, param: string | null = null): Refusal {
  return new Refusal("resource_not_found", `No such ${resource}.`, param);
}

export function invalidValue(param: string, message: string): Refusal {
  return new Refusal("invalid_value", message, param, [
    { field: param, code: "invalid_value", message },
  ]);
}
