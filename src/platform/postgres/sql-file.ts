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

export async function readSqlFile(url: URL): Promise<SqlFile> {
  const text = await readFile(url, "utf8");
  return {
    name: relative(root.pathname, url.pathname),
    text,
    sha256: createHash("sha256").update(text).digest("hex"),
  };
}

/** A login that lacks a privilege or may only read is not the file's fault (`withRoleAdvice` says what to do). */
const faultsOfLogin: readonly string[] = ["42501", "25006"];

/**
 * Runs all statements of a file. Throws `ConfigurationError` with the file and the line where PostgreSQL refuses one;
 * its cause is the server's error. Other errors, such as a lost connection, are thrown as they are.
 */
export async function runSqlFile(trx: Knex.Transaction, { name, text }: SqlFile): Promise<void> {
  try {
    // A question mark in the text is not a binding.
    await trx.raw(text.replaceAll("?", "\\?"));
  } catch (error) {
    const code = errorCode(error) ?? "";
    if (!(error instanceof Error) || isOutage(error) || faultsOfLogin.includes(code)) throw error;
    const { position, detail } = error as { position?: string; detail?: string };
    const line = position === undefined ? "" : `, line ${lineAt(text, Number(position))}`;
    // Knex puts the whole text before the server's message.
    const message = error.message.startsWith(text)
      ? error.message.slice(text.length + " - ".length)
      : error.message;
    throw new ConfigurationError(
      `${name}${line}: ${message}${detail === undefined ? "" : ` (${detail})`}`,
      { cause: error },
    );
  }
}

const lineAt = (text: string, position: number): number =>
  text.slice(0, position).split("\n").length;
