import { createHash } from "node:crypto";

/** A text if a header can carry it, else its hash. */
export const headerKeyOf = (text: string): string =>
  /^[\x21-\x7e]{1,200}$/.test(text) ? text : `sha256:${createHash("sha256").update(text).digest("hex")}`;
