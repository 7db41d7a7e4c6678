import type { Permission } from "../../people/permissions.ts";

/** Whether a visitor may read people's texts, notes and reasons alike: they may name customers. */
export const mayReadTexts = (permissions: ReadonlySet<Permission>): boolean => permissions.has("person:read");

/** Replaces such a text. */
export const hiddenText = "Notes may name people: reading them requires the permission person:read.";
