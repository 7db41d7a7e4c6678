import { expect, test } from "vitest";
import { type AddressKind, addressKind } from "../../../src/platform/http/destination-guard.ts";

/** Lines of addresses with blanks between them. */
const addresses: Record<AddressKind, string[]> = {
  public: [
    "1.1.1.1 99.255.255.255 100.128.0.0 172.15.255.255 172.32.0.0 192.167.0.1 198.17.255.255",
    "223.255.255.255 2606:4700:4700::1111 2a00:1450::1",
  ],
  private: [
    "10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.1 127.255.255.255 172.16.0.0",
    "172.31.255.255 192.168.0.0 192.168.255.255 ::1 0:0:0:0:0:0:0:1 fc00:: fdff:ffff::1",
  ],
  never: [
    "0.0.0.0 0.255.255.255 169.254.0.0 169.254.169.254 169.254.255.255",
    // Metadata services outside the link-local range.
    "100.100.100.200 168.63.129.16 192.0.0.192 fd00:ec2::254 fd20:ce::254",
    "192.0.0.1 192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1",
    "224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255",
    ":: fe80::1 fe80::1%eth0 febf::1 fec0::1 ff02::1 100::1 2001:db8::1 3fff::1",
    // Mapped, compatible, translated, NAT64, 6to4, Teredo; of loopback, metadata and public addresses.
    "::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:8.8.8.8 0:0:0:0:0:ffff:a9fe:a9fe ::127.0.0.1 ::7f00:1",
    "::ffff:0:127.0.0.1 64:ff9b::7f00:1 64:ff9b::8.8.8.8 64:ff9b:1::7f00:1",
    "2002:7f00:1:: 2002:a9fe:a9fe::1 2001:0:7f00:1:: 2001::1",
    // What is no address in a plain form.
    "localhost 2130706433 0x7f000001 0177.0.0.1 127.1 1.2.3 1.2.3.4.5 127.0.0.1.",
    "::ffff:127.0.0.1%1 [::1] １２７.0.0.1",
  ],
};

const cases = Object.entries(addresses).flatMap(([kind, lines]) =>
  lines.flatMap((line) => line.split(" ").map((address) => [address, kind] as const)),
);

test.each([...cases, ["", "never"] as const])("%s is %s", (address, kind) => {
  expect(addressKind(address)).toBe(kind);
});
