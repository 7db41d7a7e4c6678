import { z } from "zod";
import type { SettingKind } from "../../platform/setting-kinds.ts";
import { type EnvelopePaths, defaultEnvelopePaths } from "../../core/contract/event-envelope.ts";

/** The names in the setting, which are those of the envelope. */
const names: Readonly<Record<string, keyof EnvelopePaths>> = {
  id: "id",
  type: "type",
  created_at: "createdAt",
  api_version: "apiVersion",
  object: "object",
};

/** Keys joined by dots. */
const place = /^[^.\s]+(\.[^.\s]+)*$/;

/** Paths to the parts of an event in its body. A part that is not named is at its default path. */
export const envelopePlaces: SettingKind<Readonly<EnvelopePaths>> = {
  schema: z.string().transform((text, context): EnvelopePaths => {
    const places = { ...defaultEnvelopePaths };
    const named = new Set<string>();
    for (const pair of text.split(",")) {
      const [name = "", path = "", ...more] = pair.split("=").map((part) => part.trim());
      const part = Object.hasOwn(names, name) ? names[name] : undefined;
      if (part === undefined || more.length > 0 || !place.test(path)) {
        context.addIssue({ code: "custom", message: "has a part that is not name=place" });
      } else if (named.has(name)) {
        context.addIssue({ code: "custom", message: `names the place of ${name} twice` });
      } else {
        named.add(name);
        places[part] = path;
      }
    }
    return places;
  }),
  should: `name=place pairs separated by commas, each name one of ${Object.keys(names).join(", ")}, each place keys joined by dots, such as id=event_id,object=data.object`,
};
