import { expect } from "vitest";

/** No counts at all. `toMatchObject` takes `{}` for a part of anything. */
export const none: unknown = expect.toSatisfy((counts: object) => Object.keys(counts).length === 0, "empty");
