import { readFileSync } from "node:fs";
import type { z } from "zod";
import { ConfigurationError } from "./errors.ts";
import { type Path, parseJsonWithComments } from "./json-with-comments.ts";
import type { ReadFile } from "./settings.ts";

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
