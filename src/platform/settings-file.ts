import { readFileSync } from "node:fs";
import type { z } from "zod";
import { ConfigurationError } from "./errors.ts";
import type { ReadFile } from "./settings.ts";
import {
  type Node,
  type ParseError,
  createScanner,
  findNodeAtLocation,
  parseTree,
  printParseErrorCode,
} from "jsonc-parser";

/** A wrong setting of a file. */
export interface Problem {
  path: Path;
  says: string;
}

const readText: ReadFile = (path) => readFileSync(path, "utf8");

/**
 * Reads a file of settings, which may have comments. Throws one `ConfigurationError` that names every wrong setting
 * with its place and line.
 *
 * @param contradictions faults of settings that are valid individually
 */
export function readSettingsFile<Schema extends z.ZodType>(
  { file, variable, readFile = readText }: SettingsFile,
  schema: Schema,
  contradictions: (settings: z.output<Schema>) => readonly Problem[],
): z.output<Schema> {
  const place = `${variable} (${file})`;
  const text = readOrRefuse(file, place, readFile);
  if (text.trim() === "") {
    throw new ConfigurationError(`${place} is empty. It should hold an object: { … }.`);
  }
  const parsed = parseJsonWithComments(text);
  if (!parsed.ok) {
    const { line, column } = parsed.place;
    throw new ConfigurationError(`${place} cannot be read at line ${line}, column ${column}: ${parsed.reason}.`);
  }
  const { data, error } = schema.safeParse(parsed.value);
  const problems = error === undefined ? contradictions(data) : error.issues.map(problemOf);
  if (error === undefined && problems.length === 0) return data;
  const said = problems
    .map(({ path, says }) => ({ line: parsed.lineOf(path), path, says }))
    .sort((a, b) => a.line - b.line)
    .map(({ line, path, says }) => `  - line ${line}, ${nameOf(path)}: ${says}`);
  const many = said.length > 1 ? `${said.length} settings are` : "one setting is";
  throw new ConfigurationError(`${place}: ${many} wrong:\n${said.join("\n")}`);
}

export interface SettingsFile {
  file: string;
  /** The variable that names the file. */
  variable: string;
  readFile?: ReadFile | undefined;
}

function readOrRefuse(file: string, place: string, readFile: ReadFile): string {
  try {
    return readFile(file);
  } catch (cause) {
    throw new ConfigurationError(`${place} cannot be read. Check the path and who may read it.`, {
      cause,
    });
  }
}

function problemOf(issue: z.core.$ZodIssue): Problem {
  const [key] = issue.code === "unrecognized_keys" ? issue.keys : [];
  return { path: key === undefined ? issue.path : [...issue.path, key], says: issue.message };
}

const nameOf = (path: Path): string => (path.length === 0 ? "the file" : path.map(String).join("."));

export type Path = readonly PropertyKey[];

/** Line and column, both from 1. */
interface Position {
  line: number;
  column: number;
}

type JsonWithComments =
  | {
      ok: true;
      value: unknown;
      /** The line (from 1) of the value at this path, or of the nearest value that encloses it. */
      lineOf: (path: Path) => number;
    }
  | { ok: false; place: Position; reason: string };

/** Far deeper than any settings need, and far less than would overflow the parser's stack. */
const maxLevels = 100;

/**
 * Reads JSON with `//` and block comments and trailing commas, and remembers the line of each value. Rejects a key that
 * occurs twice: one of the two would be ignored without notice.
 */
export function parseJsonWithComments(given: string): JsonWithComments {
  // The byte order mark that some editors write. A blank in its place keeps the columns right.
  const text = given.replace(/^\uFEFF/, " ");
  const fail = (offset: number, reason: string): JsonWithComments => {
    return { ok: false, place: placeIn(text, offset), reason };
  };
  const tooDeep = firstTooDeep(text);
  if (tooDeep !== null) return fail(tooDeep, `values are nested more than ${maxLevels} levels deep`);
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first !== undefined || root === undefined) {
    const reason = first === undefined ? undefined : reasons[printParseErrorCode(first.error)];
    return fail(first?.offset ?? text.length, reason ?? "this is not JSON");
  }
  const twice = firstRepeatedKey(root);
  if (twice !== null) {
    return fail(twice.offset, `the key ${JSON.stringify(twice.value)} is repeated`);
  }
  const lineOf = (path: Path): number => {
    const node = findNodeAtLocation(
      root,
      path.map((key) => (typeof key === "number" ? key : String(key))),
    );
    return node === undefined ? lineOf(path.slice(0, -1)) : placeIn(text, node.offset).line;
  };
  return { ok: true, value: valueOf(root), lineOf };
}

const reasons: Readonly<Record<string, string>> = {
  InvalidSymbol: "this word is not a value: keys and texts need double quotes",
  InvalidNumberFormat: "this number is malformed",
  PropertyNameExpected: "a key in double quotes is expected here",
  ValueExpected: "a value is expected here",
  ColonExpected: "a colon is expected here",
  CommaExpected: "a comma is expected here",
  CloseBraceExpected: "a comma or } is expected here",
  CloseBracketExpected: "a comma or ] is expected here",
  EndOfFileExpected: "nothing is allowed after the end",
  UnexpectedEndOfComment: "this comment has no end",
  UnexpectedEndOfString: "this text has no closing double quote",
  UnexpectedEndOfNumber: "this number is incomplete",
  InvalidUnicode: "this text contains an invalid escape",
  InvalidEscapeCharacter: "this text contains an invalid escape",
  InvalidCharacter: "this text contains a control character",
};

/**
 * The place where the nesting becomes too deep. Scans tokens instead of parsing, since the parser recurses at every
 * level.
 */
function firstTooDeep(text: string): number | null {
  const scanner = createScanner(text, true);
  let level = 0;
  for (;;) {
    scanner.scan();
    const offset = scanner.getTokenOffset();
    if (offset >= text.length) return null;
    const first = text[offset];
    if (first === "{" || first === "[") level += 1;
    if (first === "}" || first === "]") level -= 1;
    if (level > maxLevels) return offset;
  }
}

function firstRepeatedKey(node: Node): Node | null {
  const keys = new Set<unknown>();
  for (const child of node.children ?? []) {
    const [key] = node.type === "object" ? (child.children ?? []) : [];
    if (key !== undefined && keys.has(key.value)) return key;
    if (key !== undefined) keys.add(key.value);
    const inside = firstRepeatedKey(child);
    if (inside !== null) return inside;
  }
  return null;
}

/** Unlike jsonc-parser's `getNodeValue`, keeps a key named `__proto__` too. */
function valueOf(node: Node): unknown {
  const children = node.children ?? [];
  if (node.type === "array") return children.map(valueOf);
  if (node.type !== "object") return node.value;
  return Object.fromEntries(
    children.flatMap(({ children: [key, value] = [] }) =>
      key === undefined || value === undefined ? [] : [[key.value as string, valueOf(value)]],
    ),
  );
}

function placeIn(text: string, offset: number): Position {
  const before = text.slice(0, offset).split("\n");
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}
