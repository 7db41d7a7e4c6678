import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { UsageError } from "../../platform/errors.ts";
import { registerSecret } from "../../platform/redaction.ts";
import type { CliContext } from "./context.ts";

/**
 * Asks for a secret, which the terminal does not show. Without a terminal it is the first line of standard input, so
 * that no command line holds it. Throws `UsageError` after Ctrl-C and for an empty input.
 */
export async function askSecret(
  { stdin, stderr }: Pick<CliContext, "stdin" | "stderr">,
  question: string,
): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output: silent, terminal: stdin.isTTY });
  if (stdin.isTTY) stderr.write(`${question}: `);
  const answer = await new Promise<string | null>((resolve) => {
    lines.once("line", resolve);
    lines.once("close", () => resolve(null));
  });
  lines.close();
  if (stdin.isTTY) stderr.write("\n");
  if (answer === null || answer === "") throw new UsageError("Nothing was typed, so nothing was done.");
  registerSecret(answer);
  return answer;
}
