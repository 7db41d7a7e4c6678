import { isUtf8 } from "node:buffer";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { UsageError } from "../platform/errors.ts";
import { readInputFile } from "../platform/input-file.ts";

const maxBytes = 65_536;

/**
 * A secret from a file, from standard input, or typed at a terminal without being shown. Never from the
 * arguments, which other users of the machine and the shell's history can read. Throws `UsageError`.
 */
export async function readSecret(
  { stdin, stderr }: { stdin: NodeJS.ReadStream; stderr: NodeJS.WritableStream },
  file: string | undefined,
): Promise<string> {
  if (file !== undefined) return secretOf(await readInputFile(file));
  if (stdin.isTTY) return askFor({ stdin, stderr }, "The secret (it is not shown): ");
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    const part = Buffer.from(chunk as string | Buffer);
    bytes += part.length;
    chunks.push(part);
    if (bytes > maxBytes) break;
  }
  return secretOf(Buffer.concat(chunks));
}

/** One line break at its end, which editors and `echo` add, is not part of it. Throws `UsageError` for what no service gives out. */
function secretOf(bytes: Buffer): string {
  if (bytes.length > maxBytes) {
    throw new UsageError(`This is far too long for a secret: over ${maxBytes} bytes.`);
  }
  if (!isUtf8(bytes)) {
    throw new UsageError("This is no secret but binary data: a secret is text, in UTF-8.");
  }
  return bytes.toString("utf8").replace(/\r?\n$/, "");
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
