import { tallyhook } from "./command-line.ts";
import { nearestName } from "./nearest-name.ts";
import { redactSecrets } from "./redaction.ts";
import type { SettingKind } from "./setting-kinds.ts";

export type Environment = Readonly<Record<string, string | undefined>>;
export type ReadFile = (path: string) => string;

export interface Setting<T> extends SettingKind<T> {
  fallback: T;
  /** Also read from the file that `<NAME>_FILE` names; the value is never shown. */
  isSecret: boolean;
  /** An example value, where there is no default to show. */
  example: string | null;
  /** Sentences for people: the setting's purpose, and the effect of leaving it unset. Plain text. */
  about: string;
}

export const setting = <T>(kind: SettingKind<T>, fallback: T, about: string): Setting<T> => ({
  ...kind,
  fallback,
  isSecret: false,
  example: null,
  about,
});

export const optional = <T>(kind: SettingKind<T>, example: string, about: string): Setting<T | null> => ({
  ...kind,
  fallback: null,
  isSecret: false,
  example,
  about,
});

export const secret = <T>(kind: SettingKind<T>, about: string): Setting<T | null> => ({
  ...kind,
  fallback: null,
  isSecret: true,
  example: null,
  about,
});

type Settings = Readonly<Record<string, Setting<unknown>>>;
type ValuesOf<S extends Settings> = {
  [Name in keyof S]: S[Name] extends Setting<infer T> ? T : never;
};

export interface ReadSettings<S extends Settings> {
  /** A setting with a problem has its fallback, so that later checks can continue and find more problems. */
  values: ValuesOf<S>;
  /** One or two sentences for each bad variable: the fault and the expected form. */
  problems: { name: string; text: string }[];
}

/**
 * Reads every setting and reports every problem, not only the first. A variable set to an empty text is a problem, so
 * that an empty secret never means "none".
 */
export function readSettings<S extends Settings>(settings: S, env: Environment, readFile: ReadFile): ReadSettings<S> {
  const problems: { name: string; text: string }[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, each] of Object.entries(settings)) {
    values[name] = each.fallback;
    const found = findText(name, each, env, readFile);
    if ("problem" in found) problems.push({ name, text: found.problem });
    if (!("text" in found)) continue;
    if (isInQuotationMarks(found.text)) {
      problems.push({ name, text: `${found.source} is in quotation marks. Remove them.` });
      continue;
    }
    const parsed = each.schema.safeParse(found.text);
    if (parsed.success) {
      values[name] = parsed.data;
      continue;
    }
    // Only our own checks have code "custom" and a message; "Invalid input" is zod's default for one without.
    const reasons = parsed.error.issues
      .filter(({ code, message }) => code === "custom" && message !== "Invalid input")
      .map(({ message }) => message);
    problems.push({
      name,
      text: `${describe(found, each, reasons.join(", "))}. It should be ${each.should}.`,
    });
  }
  return { values: values as ValuesOf<S>, problems };
}

type Found = { text: string; source: string } | { problem: string } | { unset: true };

function findText(name: string, each: Setting<unknown>, env: Environment, readFile: ReadFile): Found {
  const fileName = `${name}_FILE`;
  const [inline, file] = [env[name], each.isSecret ? env[fileName] : undefined];
  if (inline !== undefined && file !== undefined) {
    return { problem: `${name} and ${fileName} are both set. Keep one of them.` };
  }
  if (inline !== undefined) {
    if (inline.trim() !== "") return { text: inline, source: name };
    return { problem: `${name} is empty. It should be ${each.should}, or not be set.` };
  }
  if (file === undefined) return { unset: true };
  const text = readSecretFile(file, readFile);
  if (text === null) {
    return {
      problem: `${fileName}: the file${shownPath(file)} cannot be read. It should hold ${each.should}.`,
    };
  }
  if (text.trim() === "") {
    return {
      problem: `${fileName}: the file${shownPath(file)} is empty. It should hold ${each.should}.`,
    };
  }
  return { text, source: fileName };
}

/** Editors and `echo` add a line break at the end, which is not part of the secret. */
function readSecretFile(path: string, readFile: ReadFile): string | null {
  try {
    return readFile(path).replace(/\r?\n$/, "");
  } catch {
    return null;
  }
}

/** `NAME is "value": it has …`; for a secret, whose value is not shown, `NAME has …`. */
function describe(
  { text, source }: { text: string; source: string },
  { isSecret }: Setting<unknown>,
  reason: string,
): string {
  if (isSecret) return `${source} ${reason === "" ? "is not usable" : reason}`;
  return `${source} is ${quote(text)}${reason === "" ? "" : `: it ${reason}`}`;
}

/** Some tools' env files keep quotation marks as part of the value; a secret with them would never verify anything. */
const isInQuotationMarks = (text: string): boolean => /^(["']).*\1\s*$/s.test(text);

/** Shows only texts that look like a path: by mistake, the variable may hold the secret itself. */
const shownPath = (file: string): string => (/^\.{0,2}\//.test(file) ? ` ${quote(file)}` : " that it names");

/** A longer text is not quoted: most of it would be cut, and the expressions below are slow for long texts. */
const maxQuoted = 500;

/** Fit for a message: one line, short, without secrets in URLs, and without secrets set in the wrong variable. */
function quote(value: string): string {
  if (value.length > maxQuoted) return `a text of ${value.length} characters`;
  const text = redactSecrets(value.replace(/\/\/\S*@/g, "//…@").replace(/(:\/\/[^?#]*[?#]).+/, "$1…"));
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

export interface UnknownVariables {
  /** Apparently misspelled: the program would run without the setting that was meant. */
  problems: { name: string; text: string }[];
  /** Variables without effect. */
  warnings: string[];
}

/** A name without our prefix counts as a misspelling only if it is this long and this near: short names look alike. */
const minForeignLength = 8;
const maxForeignDistance = (name: string): number => (name.length < 12 ? 1 : 2);
/**
 * Only settings with names of this length are looked for: RECONCILE_MOD can only mean ours, while other programs read
 * LOGLEVEL and MAILFROM.
 */
const minOwnLength = 12;

/** Decides which names belong to this program. */
export interface Naming {
  /** Prefixes of names that are meant for this program. */
  readonly prefixes: readonly string[];
  /** Names that people give to a setting by mistake, each with the setting's own. */
  readonly alsoCalled: Readonly<Record<string, string>>;
  /** Names that belong to other programs, or that people choose. */
  readonly ofOthers: RegExp;
  /** Whether the variable comes from a file of ours, where an unknown name is more likely a mistake than elsewhere. */
  isFromFile(name: string): boolean;
}

/** A name of another form in a file may be a secret that stands alone on its line. */
const shownName = /^[A-Z][A-Z0-9_]{0,39}$/;

/**
 * Variables that are set but never read: those with one of our prefixes, and those whose name is nearly that of an
 * unset secret or of an unset setting with a long name; from a file of ours, those near any unset setting, and all with
 * our prefixes. A misspelling (DATABSE_URL, ALERT_SETTINGS_FILES) would go unnoticed: the program runs, on another
 * database or without those settings. All other unknown names in the file are named in a warning.
 */
export function unknownVariables(
  settings: Settings,
  env: Environment,
  { prefixes, alsoCalled, ofOthers, isFromFile }: Naming,
): UnknownVariables {
  const isSet = (name: string): boolean => env[name] !== undefined;
  const namesOf = ([name, { isSecret }]: [string, Setting<unknown>]): string[] =>
    isSecret ? [name, `${name}_FILE`] : [name];
  const entries = Object.entries(settings);
  const known = new Set(entries.flatMap(namesOf));
  const unset = entries.filter((entry) => !namesOf(entry).some(isSet));
  const missing = unset.filter((entry) => entry[1].isSecret || entry[0].length >= minOwnLength).flatMap(namesOf);
  const missingInFile = [
    ...unset.flatMap(namesOf),
    ...Object.keys(alsoCalled).filter((name) => !isSet(alsoCalled[name] ?? "")),
  ];
  const found: UnknownVariables = { problems: [], warnings: [] };
  const withoutEffect: string[] = [];
  for (const name of Object.keys(env).filter(isSet).sort()) {
    if (known.has(name)) continue;
    const isOurs = prefixes.some((prefix) => name.startsWith(prefix));
    const isStrict = isFromFile(name) && !ofOthers.test(name);
    const nearest = isOurs
      ? nearestName(name, known)
      : isStrict
        ? nearestName(name, missingInFile, { atMost: maxForeignDistance(name) })
        : name.length >= minForeignLength
          ? nearestName(name, missing, { atMost: maxForeignDistance(name) })
          : null;
    if (nearest !== null) {
      found.problems.push({
        name,
        text: `${name} is not a setting. Did you mean ${alsoCalled[nearest] ?? nearest}? Rename it, or unset it.`,
      });
    } else if (isOurs && isStrict) {
      found.problems.push({
        name,
        text: `${name} is not a setting. Remove it from .env; "${tallyhook("settings")}" lists all settings.`,
      });
    } else if (isOurs) {
      found.warnings.push(`${name} is set, but there is no such setting: it does nothing.`);
    } else if (isStrict && shownName.test(name)) {
      withoutEffect.push(name);
    }
  }
  if (withoutEffect.length > 0) {
    found.warnings.push(`No settings of Tallyhook, though in .env: ${withoutEffect.join(", ")}.`);
  }
  return found;
}
