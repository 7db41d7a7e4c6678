import fc from "fast-check";

/** Text of any code points, halves of pairs among them. fast-check's own unit for it takes a second to make. */
export const anyText = (constraints: fc.StringSharedConstraints = {}): fc.Arbitrary<string> =>
  fc.string({ ...constraints, unit: codePoint });

const codePoint = fc
  .oneof({ weight: 3, arbitrary: fc.nat(0x2ff) }, fc.nat(0xffff), fc.nat(0x10ffff))
  .map((code) => String.fromCodePoint(code));
