import { ConfigurationError } from "../../platform/errors.ts";
import { nearestName } from "../../platform/nearest-name.ts";
import { allIdentities } from "./all.ts";
import type { IdentityMode } from "./identity.ts";

/**
 * The mode of every identity: its own, or what RECONCILE_IDENTITIES says of it. Throws `ConfigurationError` that
 * names what is no identity.
 */
export function identityModesOf(
  settings: Readonly<Record<string, IdentityMode>>,
): ReadonlyMap<string, IdentityMode> {
  const modes = new Map(allIdentities.map(({ name, mode }) => [name, mode]));
  for (const [name, mode] of Object.entries(settings)) {
    if (!modes.has(name)) {
      const nearest = nearestName(name, modes.keys());
      const hint = nearest === null ? "" : ` Did you mean ${nearest}?`;
      throw new ConfigurationError(`RECONCILE_IDENTITIES: there is no identity ${name}.${hint}`);
    }
    modes.set(name, mode);
  }
  return modes;
}
