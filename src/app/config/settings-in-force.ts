import { redactSecrets } from "../../platform/redaction.ts";
import type { Environment, Setting } from "../../platform/settings.ts";

/** A setting as shown to people. */
export interface SettingInForce {
  name: string;
  isSecret: boolean;
  /** Null: it is not set, and there is no default. Of a secret that is set: "set". */
  value: string | null;
  source: "environment" | ".env" | "file" | "default";
  /** The value in force where the setting is not set; null: none. */
  fallback: string | null;
  /** Completes the sentence "it should be …". */
  should: string;
  /** Sentences for people: the setting's purpose, and the effect of leaving it unset. */
  about: string;
}

/** Every setting with its value and where that comes from, by name; no secret. `own`: what no `.env` file gave. */
export function settingsInForce(
  settings: Readonly<Record<string, Setting<unknown>>>,
  env: Environment,
  own: Environment,
): SettingInForce[] {
  return Object.entries(settings)
    .map(([name, { isSecret, fallback, should, about }]): SettingInForce => {
      const shown = fallbackText(fallback);
      const isInFile = isSecret && env[`${name}_FILE`] !== undefined;
      const given = isInFile ? env[`${name}_FILE`] : env[name];
      const setting = { name, isSecret, fallback: shown, should, about };
      if (given === undefined) return { ...setting, value: shown, source: "default" };
      const isOwn = own[isInFile ? `${name}_FILE` : name] !== undefined;
      return {
        ...setting,
        value: isSecret ? "set" : redactSecrets(given),
        source: isInFile ? "file" : isOwn ? "environment" : ".env",
      };
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** A default as the setting would be written; null where there is none. */
export function fallbackText(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return value;
  if (typeof value !== "object") return JSON.stringify(value);
  const parts = Array.isArray(value)
    ? value.map(itemText)
    : Object.entries(value).map(
        ([name, text]) => `${name.replaceAll(/[A-Z]/g, (big) => `_${big.toLowerCase()}`)}=${itemText(text)}`,
      );
  return parts.length === 0 ? null : parts.join(",");
}

/** A name, or a report with the word behind it. */
function itemText(item: unknown): string {
  if (typeof item === "string") return item;
  const { name, word } = item as { name?: unknown; word?: unknown };
  if (typeof name !== "string") return JSON.stringify(item);
  return typeof word === "string" ? `${name}:${word}` : name;
}
