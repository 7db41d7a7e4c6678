import { BlockList, isIPv4, isIPv6 } from "node:net";

/**
 * `public`: of the public internet. `private`: a machine's own or a network's own. `never`: what nobody sends an
 * alert to (link-local and so the metadata services of clouds, multicast, unspecified, reserved), what cannot be
 * read, and every form of an IPv6 address that carries an IPv4 address, which says another thing than it means.
 */
export type AddressKind = "public" | "private" | "never";

/** What kind of address this text is: an IPv4 address in four decimal parts or an IPv6 address. */
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

/** Of one family: a list with IPv4 networks also takes the addresses that are mapped into IPv6. */
function nets(...subnets: readonly string[]): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [net = "", bits] = subnet.split("/");
    list.addSubnet(net, Number(bits), isIPv4(net) ? "ipv4" : "ipv6");
  }
  return list;
}

/** Those of AWS, GCP, Azure, Alibaba and Oracle that do not lie in link-local ranges. */
const metadataIPv4 = nets("100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32");
const metadataIPv6 = nets("fd00:ec2::/32", "fd20:ce::/32");

/** RFC 1918, RFC 6598 (carriers' own), loopback. */
const privateIPv4 = nets(
  "10.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "100.64.0.0/10",
  "127.0.0.0/8",
);
/** Loopback, unique local addresses. */
const privateIPv6 = nets("::1/128", "fc00::/7");

/** The IANA registry of special-purpose addresses, without what is private. */
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

/** All that is public in IPv6. Mapped, translated and NAT64 addresses lie outside. */
const globalIPv6 = nets("2000::/3");
/** Protocol assignments (with Teredo), documentation, 6to4. */
const specialIPv6 = nets("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20");
