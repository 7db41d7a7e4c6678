import { Refusal } from "../refusal.ts";
import { latestVersion } from "../rules/versions.ts";
import type { Space } from "../space.ts";
import { usableVersion } from "../versioning.ts";

/**
 * Pins the account to a version; it never goes back to an older one, and the pinned one again changes nothing (statements
 * 110, 111). An account without a pin uses the latest, so that any other is older. Webhook endpoints keep theirs. Gives back
 * what was pinned before: null at the first time.
 */
export function upgradeApiVersion(space: Space, wanted: string): string | null {
  const { version } = usableVersion(wanted, "version");
  const previous = space.account.api_version;
  const inUse = previous ?? latestVersion.version;
  if (version < inUse) {
    const message = `The account uses ${inUse}: there is no way back.`;
    throw new Refusal("invalid_api_version", message, "version");
  }
  space.account.api_version = version;
  return previous;
}

/** What `GET /account` shows (spec, Account). */
export function accountBody(space: Space): Record<string, unknown> {
  return { api_version: space.account.api_version, latest_api_version: latestVersion.version };
}
