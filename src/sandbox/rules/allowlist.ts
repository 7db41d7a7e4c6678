import { BlockList, isIP } from "node:net";

/** Whether an address is on an allowlist of addresses and CIDR ranges. How one is configured, the interface does not show. */
export function isAllowedAddress(address: string, allowed: readonly string[]): boolean {
  const plain = address.replace(/^::ffff:(?=\d+\.)/, "");
  const family = isIP(plain) === 6 ? "ipv6" : "ipv4";
  const list = new BlockList();
  for (const entry of allowed) {
    const [network = "", prefix] = entry.split("/");
    const entryFamily = isIP(network) === 6 ? "ipv6" : "ipv4";
    if (prefix === undefined) list.addAddress(network, entryFamily);
    else list.addSubnet(network, Number(prefix), entryFamily);
  }
  return list.check(plain, family);
}

/** Whether an entry is an address or a CIDR range. */
export function isAllowlistEntry(entry: string): boolean {
  const [network = "", prefix, ...more] = entry.split("/");
  const family = isIP(network);
  if (family === 0 || more.length > 0) return false;
  if (prefix === undefined) return true;
  return /^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 6 ? 128 : 32);
}
