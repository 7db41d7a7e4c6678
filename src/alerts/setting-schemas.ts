import { z } from "zod";
import { secretVariable, wrongName } from "../platform/setting-schemas.ts";

/**
 * Objects of several kinds, distinguished by `kind`. A value in the wrong place may be a secret address, so it is not
 * shown.
 */
export const ofKind = <Option extends z.core.$ZodTypeDiscriminable>(
  kinds: readonly string[],
  options: readonly Option[],
) =>
  z.discriminatedUnion("kind", options as readonly [Option, ...Option[]], {
    error: ({ input }) =>
      input === null || typeof input !== "object" || Array.isArray(input)
        ? 'should be an object such as { "kind": "stdout" }'
        : wrongName((input as { kind?: unknown }).kind, kinds),
  });

/** Where a channel's secret is. */
export const fromVariable = secretVariable("ALERT_", "ALERT_SETTINGS_FILE");
