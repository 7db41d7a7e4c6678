import { inject } from "vitest";
import type { Pooling } from "../../src/platform/postgres/session-settings.ts";

/** The way to the databases of this run: through a pooler in the project "pooler" of `npm run torture`. */
export const testPooling = (): Pooling | undefined => (inject("poolerUrl") === null ? undefined : "transaction");
