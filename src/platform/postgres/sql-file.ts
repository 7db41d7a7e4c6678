import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { relative } from "node:path/posix";
import type { Knex } from "knex";
import { ConfigurationError } from "../errors.ts";
import { errorCode, isOutage } from "./errors.ts";

export interface SqlFile {
  /** Its path in the project. */
  name: string;
  text: string;
  sha256: string;
}

/** The project, or `dist/`: the same depth in both. */
const root = new URL("../../../", import.meta.url);

/** Names `.sql` files in folders below a place. */
export const sqlFilesBeside =
  (place: URL) =>
  (folder: string, ...names: readonly string[]): URL[] =>
    names.map((name) => new URL(`${folder}/${name}.sql`, place));

export async function readSqlFile(url: URL): Promise<SqlFile> {
  const text = await readFile(url, "utf8");
  return {
    name: relative(root.pathname, url.pathname),
    text,
    sha256: createHash("sha256").update(text).digest("hex"),
  };
}

/** Runs a text without bindings, in a transaction or on a connection. */
export type Run = <Row = unknown>(sql: string) => Promise<{ rows: Row[]; rowCount: number | null }>;

/** Runs statements on `db`, which is a transaction, or on a connection of its pool. */
export const runOn =
  (db: Knex, connection?: unknown): Run =>
  async (sql) => {
    // A question mark in the text is not a binding.
    const query = db.raw(sql.replaceAll("?", "\\?"));
    if (connection !== undefined) void query.connection(connection);
    return query;
  };

/** Runs all statements of a file; as `runStatement`. */
export async function runSqlFile(trx: Knex.Transaction, file: SqlFile): Promise<void> {
  await runStatement(runOn(trx), file, { text: file.text, offset: 0 });
}

/** A login that lacks a privilege or may only read is not the file's fault (`withRoleAdvice` has the remedy). */
const faultsOfLogin: readonly string[] = ["42501", "25006"];
/** A lock that another session holds is not the file's fault either. */
const faultsOfOthers: readonly string[] = ["55P03", "40P01"];

/**
 * Runs a statement of a file. Throws `ConfigurationError` with the file and the line where PostgreSQL refuses it; its
 * cause is the server's error. Other errors, such as a lost connection or a lock of another session, are thrown as they
 * are.
 */
export async function runStatement(
  run: Run,
  { name, text: whole }: SqlFile,
  { text, offset }: Pick<SqlStatement, "text" | "offset">,
): Promise<{ rowCount: number | null }> {
  try {
    return await run(text);
  } catch (error) {
    const code = errorCode(error) ?? "";
    const isOthersFault = [...faultsOfLogin, ...faultsOfOthers].includes(code);
    if (!(error instanceof Error) || isOutage(error) || isOthersFault) throw error;
    const { position, detail } = error as { position?: string; detail?: string };
    const line = position === undefined ? "" : `, line ${lineAt(whole, offset + Number(position) - 1)}`;
    // Knex puts the whole text before the server's message.
    const message = error.message.startsWith(text) ? error.message.slice(text.length + " - ".length) : error.message;
    throw new ConfigurationError(`${name}${line}: ${message}${detail === undefined ? "" : ` (${detail})`}`, {
      cause: error,
    });
  }
}

/** The line of a place in a text; the first is 1. */
export const lineAt = (text: string, offset: number): number => text.slice(0, offset).split("\n").length;

export interface SqlStatement {
  /** From its first word to before its semicolon. */
  text: string;
  /** Where it begins in the file, in characters. */
  offset: number;
  /** The comments before it and in it, without their marks. */
  comments: string[];
}

// In this order: a comment, a string, a quoted name, a body between dollars, a word, the end of a statement, all else.
const token =
  /(?<space>\s+)|--(?<line>[^\n]*)|\/\*(?<block>.*?)\*\/|(?<text>[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(?<tag>(?:[a-z_]\w*)?)\$.*?\$\k<tag>\$)|(?<word>[a-z_]\w*)|(?<end>;)|./gisy;

/**
 * Splits the text of a file into its statements, as the server would. Knows strings, quoted names, bodies between
 * dollars, comments (not nested ones) and the bodies of functions that begin with `begin atomic`.
 */
export function splitStatements(text: string): SqlStatement[] {
  const found: SqlStatement[] = [];
  let from: number | null = null;
  let comments: string[] = [];
  let words: string[] = [];
  let depth = 0;
  const finish = (to: number): void => {
    if (from !== null) found.push({ text: text.slice(from, to).trimEnd(), offset: from, comments });
    [from, comments, words, depth] = [null, [], [], 0];
  };
  for (const match of text.matchAll(token)) {
    const { space, line, block, word, end } = match.groups ?? {};
    const comment = line ?? block;
    if (space !== undefined) continue;
    if (comment !== undefined) {
      comments.push(comment.trim());
    } else if (end !== undefined && depth === 0) {
      finish(match.index);
    } else {
      from ??= match.index;
      if (word === undefined) continue;
      words.push(word.toLowerCase());
      depth += depthChange(words, depth);
    }
  }
  finish(text.length);
  return found;
}

/** The change of depth that the last word makes among the blocks in the body of a function of the SQL standard. */
function depthChange(words: readonly string[], depth: number): number {
  const [last, before] = [words.at(-1), words.at(-2)];
  if (last === "atomic" && before === "begin" && words[0] === "create") return 1;
  if (depth === 0) return 0;
  return last === "case" ? 1 : last === "end" ? -1 : 0;
}
