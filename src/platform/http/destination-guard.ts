import { type LookupAddress, lookup as lookUp } from "node:dns";
import { BlockList, type LookupFunction, type Socket, connect as openSocket, isIP, isIPv4, isIPv6 } from "node:net";
import type { buildConnector } from "undici";
import { onDemand } from "../on-demand.ts";

/** A destination that messages must not go to. The text names the host, which is no secret, and what to do. */
export class DestinationRefused extends Error {
  override readonly name = "DestinationRefused";
}

/** The hosts that may be reached. */
export interface DestinationLists {
  /** Reached only by https, at addresses of the public internet. */
  allowedHosts: readonly string[];
  /** May also be reached by http and at loopback and private addresses, but never at metadata or link-local ones. */
  privateHosts: readonly string[];
  /** Prefix of both lists in the settings, with a dot, for messages. Default: `destinations.` */
  listsUnder?: string;
}

export type ResolveHost = (host: string) => Promise<readonly LookupAddress[]>;

export interface DestinationGuard {
  /** The reason why messages must not go to this URL, decided without a DNS lookup; null where they may. */
  refusal(url: URL): string | null;
  /** The same for a host that is not reached by HTTP. */
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
 * Restricts where messages may go. The host must be on the list in the settings, and the connection is made to the very
 * address that was checked. A name that resolves differently the second time, or an unusual spelling of an address,
 * therefore gains nothing.
 */
export function createDestinationGuard(
  { allowedHosts, privateHosts, listsUnder = "destinations." }: DestinationLists,
  resolveHost: ResolveHost = systemResolve,
): DestinationGuard {
  const mayBePrivate = (host: string): boolean => privateHosts.includes(host);

  function hostRefusal(host: string): string | null {
    if (allowedHosts.includes(host) || mayBePrivate(host)) return null;
    return `the host ${host} is not on the list: add it to ${listsUnder}allowedHosts if it should be`;
  }

  function refusal(url: URL): string | null {
    const host = bareHost(url.hostname);
    const refused = hostRefusal(host);
    if (refused !== null) return refused;
    if (isIP(host) > 0 && addressRefusal(host, host) !== null) return addressRefusal(host, host);
    if (url.protocol === "https:") return null;
    if (url.protocol === "http:" && mayBePrivate(host)) return null;
    return `${host} must be reached by https (http is for ${listsUnder}privateHosts alone)`;
  }

  async function resolve(host: string): Promise<readonly LookupAddress[]> {
    const refused = hostRefusal(host);
    if (refused !== null) throw new DestinationRefused(refused);
    const family = isIP(host);
    const addresses = family > 0 ? [{ address: host, family }] : await resolveHost(host);
    for (const { address } of addresses) {
      const why = addressRefusal(host, address);
      if (why !== null) throw new DestinationRefused(why);
    }
    return addresses;
  }

  function addressRefusal(host: string, address: string): string | null {
    const kind = addressKind(address);
    if (kind === "public" || (kind === "private" && mayBePrivate(host))) return null;
    return kind === "private"
      ? `${host} is at a private address: add it to ${listsUnder}privateHosts if that is meant`
      : `${host} is at an address to which nothing may be sent`;
  }

  return {
    refusal,
    hostRefusal,
    resolve,
    connector: (options, callback) => {
      void connectChecked(options, callback);
    },
    async connect(host, port) {
      const lookup = lookupAmong(await resolve(host));
      return connected(openSocket({ host, port, lookup, timeout: connectTimeoutMs }));
    },
  };

  async function connectChecked(options: buildConnector.Options, callback: buildConnector.Callback): Promise<void> {
    let addresses: readonly LookupAddress[];
    try {
      addresses = await resolve(bareHost(options.hostname));
    } catch (error) {
      return callback(error instanceof Error ? error : new Error("no address"), null);
    }
    const lookup = lookupAmong(addresses);
    onDemand.undici.buildConnector({ lookup, timeout: connectTimeoutMs })(options, callback);
  }
}

/** The lookup function of a socket: it returns only the checked addresses. */
function lookupAmong(checked: readonly LookupAddress[]): LookupFunction {
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
    lookUp(host, { all: true }, (error, addresses) => (error === null ? resolve(addresses) : reject(error)));
  });

/** `[::1]` → `::1`, the form that the rest of Node uses. */
export const bareHost = (hostname: string): string => hostname.toLowerCase().replace(/^\[(.*)\]$/, "$1");

const isNumber = (family: unknown): family is 4 | 6 => family === 4 || family === 6;

const unknownHost = (host: string): NodeJS.ErrnoException =>
  Object.assign(new Error(`${host} has no address`), { code: "ENOTFOUND" });

const timedOut = (): NodeJS.ErrnoException => Object.assign(new Error("no connection in time"), { code: "ETIMEDOUT" });

/**
 * `public`: on the public internet. `private`: of this machine or a private network. `never`: no destination, such as
 * link-local addresses (cloud metadata services among them), multicast, unspecified and reserved addresses, text that is
 * not an address, and every IPv6 form that embeds an IPv4 address, since it hides its real target.
 */
export type AddressKind = "public" | "private" | "never";

/** The kind of an address: IPv4 in four decimal parts, or IPv6. */
export function addressKind(address: string): AddressKind {
  if (isIPv4(address)) {
    if (metadataIPv4.check(address)) return "never";
    if (privateIPv4.check(address)) return "private";
    return specialIPv4.check(address) ? "never" : "public";
  }
  if (!isIPv6(address) || address.includes("%")) return "never";
  if (metadataIPv6.check(address, "ipv6")) return "never";
  if (privateIPv6.check(address, "ipv6")) return "private";
  const isGlobal = globalIPv6.check(address, "ipv6") && !specialIPv6.check(address, "ipv6");
  return isGlobal ? "public" : "never";
}

/** Takes subnets of one family only: a list with IPv4 subnets also matches their IPv4-mapped IPv6 addresses. */
function nets(...subnets: readonly string[]): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [net = "", bits] = subnet.split("/");
    list.addSubnet(net, Number(bits), isIPv4(net) ? "ipv4" : "ipv6");
  }
  return list;
}

/** Metadata addresses of AWS, GCP, Azure, Alibaba and Oracle outside the link-local ranges. */
const metadataIPv4 = nets("100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32");
const metadataIPv6 = nets("fd00:ec2::/32", "fd20:ce::/32");

/** RFC 1918, RFC 6598 (carrier-grade NAT), loopback. */
const privateIPv4 = nets("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8");
/** Loopback, unique local addresses. */
const privateIPv6 = nets("::1/128", "fc00::/7");

/** The IANA registry of special-purpose addresses, without the private ones. */
const specialIPv4 = nets(
  "0.0.0.0/8",
  "169.254.0.0/16",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
);

/** All public IPv6 addresses. Mapped, translated and NAT64 addresses are outside this range. */
const globalIPv6 = nets("2000::/3");
/** Protocol assignments (with Teredo), documentation, 6to4. */
const specialIPv6 = nets("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20");
