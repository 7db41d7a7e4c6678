import { inject } from "vitest";

/**
 * How many cases a property is tried with: few in `npm test`, many in `npm run test:long` for the files that
 * `longerTests` names, and in `npm run torture` for those that run there.
 */
export const rounds = (few: number, many: number, torture = many): number =>
  inject("isTorture") ? torture : inject("isLong") ? many : few;
