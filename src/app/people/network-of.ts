import { isIPv6 } from "node:net";

/**
 * The network by which attempts are counted: an IPv4 address, or the first 64 bits of an IPv6 address, since a person
 * can choose the rest. Without brackets and port, which some proxies write and which differ each time. Any other text
 * is returned as it is.
 */
export function networkOf(written: string): string {
  const address = written
    .replace(/^\[([^\]]*)\](:\d+)?$/, "$1")
    .replace(/^([^:]+):\d+$/, "$1")
    .replace(/^::ffff:(?=\d+\.)/i, "")
    .replace(/%.*$/, "");
  if (!isIPv6(address)) return address;
  // A URL has one way to write each address.
  const [before = "", after] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const groups = before === "" ? [] : before.split(":");
  const behind = after === undefined || after === "" ? 0 : after.split(":").length;
  while (groups.length + behind < 8) groups.push("0");
  return `${groups.slice(0, 4).join(":")}::/64`;
}
