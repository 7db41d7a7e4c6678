import { z } from "zod";
import { type Role, isRole, roleNames } from "../people/permissions.ts";
import type { SettingKind } from "../../platform/setting-kinds.ts";

/** The roles for members of the company's groups. */
export const groupRoles: SettingKind<Readonly<Record<string, readonly Role[]>>> = {
  schema: z.string().transform((text, context) => {
    const byGroup = new Map<string, Role[]>();
    for (const pair of text.split(",")) {
      const at = pair.lastIndexOf("=");
      const group = pair.slice(0, Math.max(0, at)).trim();
      const names = pair
        .slice(at + 1)
        .split("+")
        .map((name) => name.trim());
      if (group === "" || !names.every(isRole)) {
        context.addIssue({ code: "custom", message: "has a part that is not group=role" });
      } else {
        byGroup.set(group, [...(byGroup.get(group) ?? []), ...names]);
      }
    }
    return Object.fromEntries(byGroup);
  }),
  should: `group=role pairs separated by commas, several roles joined by +, each role one of ${roleNames.join(", ")}, such as billing-team=finance+viewer`,
};
