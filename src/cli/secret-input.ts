import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { UsageError } from "../platform/errors.ts";

const maxBytes = 65_536;

/**
 * A secret from a file, from standard input, or typed at a terminal without being shown. Never from the
 * arguments, which other users of the machine and the shell's history can read. One line break at its end,
 * which editors and `echo` add, is not part of it.
 */
export async function readSecret(
  { stdin, stderr }: { stdin: NodeJS.ReadStream; stderr: NodeJS.WritableStream },
  file: string | undefined,
): Promise<string> {
  if (file !== undefined) return withoutLineBreak(await readSecretFile(file));
  if (stdin.isTTY) return askFor({ stdin, stderr }, "The secret (it is not shown): ");
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    const part = Buffer.from(chunk as string | Buffer);
    bytes += part.length;
    if (bytes > maxBytes) throw new UsageError("Standard input is far too long for a secret.");
    chunks.push(part);
  }
  return withoutLineBreak(Buffer.concat(chunks).toString("utf8"));
}

async function readSecretFile(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new UsageError(`${file} cannot be read (${code}).`, { cause });
  }
}

async function askFor(
  { stdin, stderr }: { stdin: NodeJS.ReadStream; stderr: NodeJS.WritableStream },
  question: string,
): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output: nowhere, terminal: true });
  stderr.write(question);
  try {
    return await new Promise<string>((resolve, reject) => {
      lines.once("close", () => reject(new UsageError("No secret was given.")));
      lines.once("line", resolve);
    });
  } finally {
    lines.close();
    stderr.write("\n");
  }
}

const withoutLineBreak = (text: string): string => text.replace(/\r?\n$/, "");
