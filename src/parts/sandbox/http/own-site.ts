import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";
import { isLoopbackHost } from "../../../platform/http/listen.ts";
import { ApiError } from "../engine/api-error.ts";

/** Whether the sandbox answers to a host name, written as in URLs: lower case, IPv6 in brackets. */
export type IsOwnHost = (hostname: string) => boolean;

const anyAddress: readonly string[] = ["0.0.0.0", "::"];

/**
 * The names of a sandbox that listens on `host`: those of loopback, `host` itself, and `allowed`. One that listens on
 * every address also answers to any IP address: a page can make its own name point at this machine, but not an address.
 */
export function ownHosts(host: string, allowed: readonly string[]): IsOwnHost {
  const names = new Set([host, ...allowed].flatMap((name) => hostnameOf(urlHost(name)) ?? []));
  const takesAddresses = anyAddress.includes(host);
  return (hostname) =>
    isLoopbackHost(hostname) || names.has(hostname) || (takesAddresses && isIP(hostname.replace(/^\[|\]$/g, "")) !== 0);
}

/** A host name without a port, as `--allow-host` takes it. */
export function isHostname(text: string): boolean {
  return /^[a-z\d.-]+$/i.test(text) && hostnameOf(text) !== undefined;
}

/**
 * Refuses requests from web pages in a browser on this machine, except the sandbox's own. A page of any site can send
 * requests to loopback, and can read the answers if its name points there; the keys are publicly known. Programs send
 * neither `Origin` nor `Sec-Fetch-Site`. A link to the documentation may be followed from anywhere, since it changes
 * nothing.
 */
export function assertOwnSite(
  request: { method: string; path: string; headers: IncomingHttpHeaders },
  isOwnHost: IsOwnHost,
): void {
  const { host = "", origin } = request.headers;
  const hostname = hostnameOf(host);
  if (hostname === undefined || !isOwnHost(hostname)) {
    throw new ApiError(
      "ip_not_allowed",
      `The sandbox does not answer to the host ${shown(host)}. Call it by localhost or 127.0.0.1, ` +
        "or start it with --allow-host and that name.",
    );
  }
  if (isLinkToDocs(request)) return;
  if (origin !== undefined && !isSameHost(origin, host)) {
    throw new ApiError(
      "ip_not_allowed",
      `The sandbox takes no requests from pages of ${shown(origin)}, only from programs and its own /docs.`,
    );
  }
  const site = request.headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none") {
    throw new ApiError(
      "ip_not_allowed",
      "The sandbox takes no requests from pages of other sites, only from programs and its own /docs.",
    );
  }
}

function isLinkToDocs({ method, path, headers }: Parameters<typeof assertOwnSite>[0]): boolean {
  const isFollowed = headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document";
  return method === "GET" && path === "/docs" && isFollowed;
}

/** An opaque origin, `null`, has no host. */
function isSameHost(origin: string, host: string): boolean {
  return URL.canParse(origin) && new URL(origin).host === new URL(`http://${host}`).host;
}

/** The name in a `Host` header; undefined for an invalid one. */
function hostnameOf(host: string): string | undefined {
  if (!/^(\[[\da-f:.]+\]|[^\s/\\@?#:[\]]+)(:\d*)?$/i.test(host)) return undefined;
  return URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : undefined;
}

function urlHost(name: string): string {
  return isIP(name) === 6 ? `[${name}]` : name;
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 100));
}
