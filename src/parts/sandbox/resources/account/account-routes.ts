import * as routes from "../../../../core/contract/resources/account.ts";
import { plainAnswer } from "../../engine/answer.ts";
import { ApiError } from "../../engine/api-error.ts";
import { latestVersion, usableVersion } from "../../engine/api-versions.ts";
import type { Space } from "../../engine/space.ts";
import { type Mounted, mounted } from "../../http/mount.ts";

const retrieve = mounted(routes.getAccount, (space) => plainAnswer(200, accountBody(space)));

const upgrade = mounted(routes.upgradeApiVersion, (space, { body }) => {
  const previous_version = upgradeApiVersion(space, body.version);
  return plainAnswer(200, { ...accountBody(space), previous_version });
});

export const accountEndpoints: readonly Mounted[] = [retrieve, upgrade];

/**
 * Pins the account to a version and returns the version pinned before, null at the first time. An account never goes
 * back to an older version, and pinning the same one changes nothing. An account without a pin uses the latest, so that
 * any other version is older. Webhook endpoints keep their own.
 */
function upgradeApiVersion(space: Space, wanted: string): string | null {
  const { version } = usableVersion(wanted, "version");
  const previous = space.account.api_version;
  const inUse = previous ?? latestVersion.version;
  if (version < inUse) {
    const message = `The account uses ${inUse}: there is no way back.`;
    throw new ApiError("invalid_api_version", message, "version");
  }
  space.account.api_version = version;
  return previous;
}

export function accountBody(space: Space): Record<string, unknown> {
  return { api_version: space.account.api_version, latest_api_version: latestVersion.version };
}
