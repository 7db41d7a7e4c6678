import type { Permission } from "../../people/permissions.ts";

/** Whether somebody may read what people wrote, notes and reasons alike: it may name customers. */
export const mayReadTexts = (permissions: ReadonlySet<Permission>): boolean => permissions.has("person:read");

/** In place of such a text. */
export const hiddenText = "What was written may name people: it takes the permission person:read.";
