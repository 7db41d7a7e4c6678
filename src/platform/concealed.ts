import { inspect } from "node:util";
import { knowSecret } from "./known-secrets.ts";

const shown = "[secret]";

/**
 * A frozen object whose values can be read by name and by nothing else: not printed, not turned to JSON (so not
 * logged), not listed, spread or copied by accident. Its texts are struck out of whatever is logged (`knowSecret`).
 */
export function conceal<T extends object>(values: T): Readonly<T> {
  const concealed: object = {};
  for (const [name, value] of Object.entries(values)) {
    for (const each of Array.isArray(value) ? (value as unknown[]) : [value]) {
      if (typeof each === "string") knowSecret(each);
    }
    if (Array.isArray(value)) Object.freeze(value);
    Object.defineProperty(concealed, name, { value, enumerable: false });
  }
  for (const name of ["toString", "toJSON", inspect.custom]) {
    Object.defineProperty(concealed, name, { value: () => shown, enumerable: false });
  }
  return Object.freeze(concealed) as Readonly<T>;
}
