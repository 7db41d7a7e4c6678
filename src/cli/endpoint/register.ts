import { ConfigurationError, UsageError } from "../../platform/errors.ts";
import { ServiceRefusedError } from "../../service/service-errors.ts";
import { isSameUrl, listEndpoints } from "../../reconcile/endpoint/list-endpoints.ts";
import type { CliContext } from "../context.ts";
import { withEndpointTools } from "./at-hand.ts";
import { finishOpenCall, obtainSecret } from "./obtain-secret.ts";

export interface RegisterOptions {
  url?: string;
  events: string[];
  apiVersion?: string;
  description?: string;
}

/** Registers the endpoint once: what was interrupted is finished, and a second one is refused. */
export async function registerOwnEndpoint(
  context: CliContext,
  options: RegisterOptions,
): Promise<void> {
  const { endpointId, secretId } = await withEndpointTools(context, async (tools) => {
    const finished = await finishOpenCall(tools);
    if (finished?.call.kind === "register") return finished.obtained;
    const url = requireUrl(options.url ?? tools.url);
    const { endpoints } = await listEndpoints(tools);
    const same = endpoints.find((endpoint) => isSameUrl(endpoint.url, url));
    if (same !== undefined) {
      throw new UsageError(
        `${url} is registered already, as ${same.id} (${same.status}). "tallyhook endpoint rotate ${same.id}" gives it a secret that is stored here.`,
      );
    }
    const { events, apiVersion, description } = options;
    const body = {
      url,
      enabled_events: events,
      ...(apiVersion === undefined ? {} : { api_version: apiVersion }),
      ...(description === undefined ? {} : { description }),
    };
    return obtainSecret(tools, { kind: "register", endpointId: null, body }).catch(
      (error: unknown) => {
        throw isAboutTheBody(error)
          ? new UsageError(
              `${error.message}. The service takes no such endpoint: see --url, --events, --api-version and --description.`,
              { cause: error },
            )
          : error;
      },
    );
  });
  context.stdout.write(
    `${endpointId} is registered; its secret is stored as ${secretId}. Running receivers use it within 5 s.\n`,
  );
}

function requireUrl(url: string | null): string {
  if (url !== null) return url;
  throw new ConfigurationError(
    "PUBLIC_URL is not set, so the service cannot be told where to send events. Set it, such as https://hooks.example.com, or say --url.",
  );
}

/** What was typed was refused, and not the key or the moment. */
const isAboutTheBody = (error: unknown): error is ServiceRefusedError =>
  error instanceof ServiceRefusedError && (error.status === 400 || error.status === 422);
