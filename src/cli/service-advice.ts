import type { Config } from "../config.ts";
import { UnreachableError } from "../platform/errors.ts";
import { ServiceUnavailableError } from "../service/service-errors.ts";

/** An error to show to a person: where the service gave no answer at all, with which one was asked and what to do. */
export function withServiceAdvice(
  error: unknown,
  { service, sandbox }: Pick<Config, "service" | "sandbox">,
): unknown {
  if (!(error instanceof ServiceUnavailableError) || error.request.status !== null) return error;
  const advice =
    service.kind === "remote"
      ? `SVC_BASE_URL is ${service.baseUrl}: check it, and that this machine reaches it.`
      : `No service is configured, so the sandbox was asked, on 127.0.0.1:${sandbox.port}: "npx tallyhook start" runs it, or set SVC_BASE_URL and SVC_API_KEY.`;
  return new UnreachableError(`${error.message}. ${advice}`, { cause: error });
}
