import { lookup as lookUp } from "node:dns";
import type { LookupAddress } from "node:dns";
import { connect as openSocket, isIP } from "node:net";
import type { LookupFunction, Socket } from "node:net";
import { buildConnector } from "undici";
import type { DestinationSettings } from "../channel-settings.ts";
import { addressKind } from "./address-kind.ts";

/** Where a message must not go. The words name the host, which is no secret, and what to do. */
export class DestinationRefused extends Error {
  override readonly name = "DestinationRefused";
}

/** Every address of a host name. */
export type ResolveHost = (host: string) => Promise<readonly LookupAddress[]>;

export interface DestinationGuard {
  /** Why a message must not go to this URL, before any name is looked up; null when it may. */
  refusal(url: URL): string | null;
  /** The same for a host that is not spoken to by HTTP. */
  hostRefusal(host: string): string | null;
  /** The addresses of a host. Throws `DestinationRefused` when one of them is not permitted. */
  resolve(host: string): Promise<readonly LookupAddress[]>;
  /** Opens connections for undici, to checked addresses only. */
  connector: buildConnector.connector;
  /** Opens a plain connection to a checked address. */
  connect(host: string, port: number): Promise<Socket>;
}

const connectTimeoutMs = 10_000;

/**
 * Keeps messages from going where they should not: the host must be on the list of the settings, and the address
 * that the connection is made to is the one that was checked. So a name that answers differently the second time,
 * or an odd way to write an address, gains nothing.
 */
export function createDestinationGuard(
  { allowedHosts, privateHosts }: DestinationSettings,
  resolveHost: ResolveHost = systemResolve,
): DestinationGuard {
  const mayBePrivate = (host: string): boolean => privateHosts.includes(host);

  function hostRefusal(host: string): string | null {
    if (allowedHosts.includes(host) || mayBePrivate(host)) return null;
    return `the host ${host} is not on the list: add it to destinations.allowedHosts if it should be`;
  }

  function refusal(url: URL): string | null {
    const host = bareHost(url.hostname);
    const refused = hostRefusal(host);
    if (refused !== null) return refused;
    if (url.protocol === "https:") return null;
    if (url.protocol === "http:" && mayBePrivate(host)) return null;
    return `${host} must be reached by https (http is for destinations.privateHosts alone)`;
  }

  async function resolve(host: string): Promise<readonly LookupAddress[]> {
    const refused = hostRefusal(host);
    if (refused !== null) throw new DestinationRefused(refused);
    const family = isIP(host);
    const addresses = family > 0 ? [{ address: host, family }] : await resolveHost(host);
    for (const { address } of addresses) {
      const kind = addressKind(address);
      if (kind === "public" || (kind === "private" && mayBePrivate(host))) continue;
      throw new DestinationRefused(
        kind === "private"
          ? `${host} is at a private address: add it to destinations.privateHosts if that is meant`
          : `${host} is at an address that no alert may go to`,
      );
    }
    return addresses;
  }

  return {
    refusal,
    hostRefusal,
    resolve,
    connector: (options, callback) => {
      void connectChecked(options, callback);
    },
    async connect(host, port) {
      const lookup = answering(await resolve(host));
      return connected(openSocket({ host, port, lookup, timeout: connectTimeoutMs }));
    },
  };

  async function connectChecked(
    options: buildConnector.Options,
    callback: buildConnector.Callback,
  ): Promise<void> {
    let addresses: readonly LookupAddress[];
    try {
      addresses = await resolve(bareHost(options.hostname));
    } catch (error) {
      return callback(error instanceof Error ? error : new Error("no address"), null);
    }
    const lookup = answering(addresses);
    buildConnector({ lookup, timeout: connectTimeoutMs })(options, callback);
  }
}

/** What a socket looks its host up with: it gets the addresses that were checked, and no others. */
function answering(checked: readonly LookupAddress[]): LookupFunction {
  return (host, { all, family }, callback) => {
    const found = checked.filter((each) => !isNumber(family) || each.family === family);
    const [first] = found;
    if (first === undefined) process.nextTick(callback, unknownHost(host), []);
    else if (all === true) process.nextTick(callback, null, found);
    else process.nextTick(callback, null, first.address, first.family);
  };
}

function connected(socket: Socket): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const settle = (error: Error | null): void => {
      for (const event of ["connect", "timeout", "error"]) socket.removeAllListeners(event);
      socket.setTimeout(0);
      if (error === null) return resolve(socket);
      socket.destroy();
      reject(error);
    };
    socket.once("connect", () => settle(null));
    socket.once("error", settle);
    socket.once("timeout", () => settle(timedOut()));
  });
}

const systemResolve: ResolveHost = (host) =>
  new Promise((resolve, reject) => {
    lookUp(host, { all: true }, (error, addresses) =>
      error === null ? resolve(addresses) : reject(error),
    );
  });

/** `[::1]` → `::1`, as the rest of Node writes it. */
export const bareHost = (hostname: string): string =>
  hostname.toLowerCase().replace(/^\[(.*)\]$/, "$1");

const isNumber = (family: unknown): family is 4 | 6 => family === 4 || family === 6;

const unknownHost = (host: string): NodeJS.ErrnoException =>
  Object.assign(new Error(`${host} has no address`), { code: "ENOTFOUND" });

const timedOut = (): NodeJS.ErrnoException =>
  Object.assign(new Error("no connection in time"), { code: "ETIMEDOUT" });
