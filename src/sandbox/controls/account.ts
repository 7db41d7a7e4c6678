import type Router from "@koa/router";
import { z } from "zod";

import { accountBody } from "../operations/upgrade-api-version.ts";
import { usableVersion } from "../versioning.ts";
import type { ControlDeps } from "./control.ts";
import { addControl } from "./control.ts";
import { nothing } from "./fields.ts";
import { place, spaceAt } from "./places.ts";

const pin = z.strictObject({ api_version: z.string().nullable(), ...place });

/** `PUT /_sandbox/account`: pins an account as one is that was made when the version was new; null takes the pin away. */
export function addAccount(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "PUT",
    path: "/account",
    query: nothing,
    body: pin,
    run({ body }) {
      const space = spaceAt(state(), body);
      const { api_version } = body;
      space.account.api_version =
        api_version === null ? null : usableVersion(api_version, "api_version").version;
      return accountBody(space);
    },
  });
}
