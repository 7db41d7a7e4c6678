import type { ChannelDeps } from "../../../src/parts/alerts/channels/channel-kind.ts";
import { type ResolveHost, createDestinationGuard } from "../../../src/platform/http/destination-guard.ts";
import { wallClock } from "../../../src/platform/clock.ts";
import { signatureScheme } from "../../../src/core/contract/signature/signature-scheme.ts";

/** What a deployment gives its channels; the hosts are those of the test. */
export function channelDeps({
  allowedHosts = [],
  privateHosts = [],
  secrets = {},
  resolve,
  ...given
}: {
  allowedHosts?: string[];
  privateHosts?: string[];
  secrets?: Record<string, string>;
  resolve?: ResolveHost;
} & Partial<ChannelDeps> = {}): ChannelDeps {
  return {
    guard: createDestinationGuard({ allowedHosts, privateHosts }, resolve),
    clock: wallClock,
    secretOf: (variable) => secrets[variable] ?? null,
    smtp: null,
    scheme: signatureScheme("svc"),
    runbooksUrl: null,
    writeLine: () => {},
    ...given,
  };
}
