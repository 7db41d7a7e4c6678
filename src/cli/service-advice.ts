import type { Config } from "../config.ts";
import { ConfigurationError, UnreachableError } from "../platform/errors.ts";
import { ServiceRefusedError, ServiceUnavailableError } from "../service/service-errors.ts";

const keyAdvice: Readonly<Record<number, string>> = {
  401: "The service does not know the key: check SVC_API_KEY, and that it is a key of this account and mode",
  403: "The key may not do this: give SVC_API_KEY a key with the right to it",
};

/**
 * An error to show to a person: where the service gave no answer at all, or refused the key, with which one was asked and
 * what to do.
 */
export function withServiceAdvice(
  error: unknown,
  { service, sandbox }: Pick<Config, "service" | "sandbox">,
): unknown {
  if (error instanceof ServiceRefusedError && service.kind === "remote") {
    const advice = keyAdvice[error.status];
    if (advice === undefined) return error;
    return new ConfigurationError(
      `${error.message}. ${advice} (SVC_BASE_URL is ${service.baseUrl}).`,
      {
        cause: error,
      },
    );
  }
  if (!(error instanceof ServiceUnavailableError) || error.request.status !== null) return error;
  const advice =
    service.kind === "remote"
      ? `SVC_BASE_URL is ${service.baseUrl}: check it, and that this machine reaches it.`
      : `No service is configured, so the sandbox was asked, on 127.0.0.1:${sandbox.port}: "npx tallyhook start" runs it, or set SVC_BASE_URL and SVC_API_KEY.`;
  return new UnreachableError(`${error.message}. ${advice}`, { cause: error });
}
