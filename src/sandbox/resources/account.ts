import * as routes from "../../service/routes/account.ts";
import { plainAnswer } from "../answer.ts";
import type { Mounted } from "../http/mount.ts";
import { mounted } from "../http/mount.ts";
import { accountBody, upgradeApiVersion } from "../operations/upgrade-api-version.ts";

const retrieve = mounted(routes.getAccount, (space) => plainAnswer(200, accountBody(space)));

const upgrade = mounted(routes.upgradeApiVersion, (space, { body }) => {
  const previous_version = upgradeApiVersion(space, body.version);
  return plainAnswer(200, { ...accountBody(space), previous_version });
});

export const accountEndpoints: readonly Mounted[] = [retrieve, upgrade];
