import { once } from "node:events";
import type { Server } from "node:http";
import { isIPv6 } from "node:net";
import { ConfigurationError } from "../errors.ts";
import { errorCode } from "../postgres/errors.ts";

/** The address to listen on, and the settings to name when that fails. */
export interface ListenAddress {
  host: string;
  /** 0 picks a free one. */
  port: number;
  hostVariable: string;
  portVariable: string;
}

/** Listens, or throws `ConfigurationError` with the reason. */
export async function listen(server: Server, address: ListenAddress): Promise<void> {
  server.listen({ host: address.host, port: address.port });
  try {
    await once(server, "listening");
  } catch (cause) {
    throw new ConfigurationError(explain(errorCode(cause), address), { cause });
  }
}

function explain(code: string | undefined, { host, port, hostVariable, portVariable }: ListenAddress): string {
  switch (code) {
    case "EADDRINUSE":
      return `${portVariable}: another program listens on ${host}:${port}. Stop it, or set another port (0 picks a free one).`;
    case "EACCES":
      return `${portVariable}: this user may not listen on port ${port}. Set one above 1023.`;
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return `${hostVariable}: ${host} is not an address of this machine. Set one that is, such as 127.0.0.1 or 0.0.0.0.`;
    default:
      return `${hostVariable} and ${portVariable}: cannot listen on ${host}:${port} (${code ?? "unknown reason"}).`;
  }
}

/** The host under which this machine reaches a server that listens on `host`. */
export function localAddress(host: string): string {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return isIPv6(reachable) ? `[${reachable}]` : reachable;
}

/** Whether a host name means this machine, written as in URLs: lower case, IPv6 in brackets. */
export const isLoopbackHost = (hostname: string): boolean =>
  /^(127(\.\d+){3}|\[::1\]|localhost|.+\.localhost)$/.test(hostname);
