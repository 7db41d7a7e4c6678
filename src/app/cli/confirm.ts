import { createInterface } from "node:readline/promises";
import { UsageError } from "../../platform/errors.ts";
import type { CliContext } from "./context.ts";

type Terminal = Pick<CliContext, "stdin" | "stderr">;

/**
 * For a command that must not run without a confirmation. Throws `UsageError` without a terminal, so that a script
 * fails for lack of `--yes` before any long work starts.
 */
export function assertCanAsk({ stdin }: Pick<Terminal, "stdin">): void {
  if (stdin.isTTY) return;
  throw new UsageError(
    "This command asks before it changes anything, and standard input is not a terminal. Add --yes to run it unasked.",
  );
}

/**
 * Asks a question that ends in a question mark, possibly with lines above it, and returns after "y" or "yes". Throws
 * `UsageError` after any other answer, after Ctrl-C and at the end of input: no work was done. The question goes to
 * standard error, so that standard output holds only the result.
 */
export async function confirm({ stdin, stderr }: Terminal, question: string): Promise<void> {
  assertCanAsk({ stdin });
  const lines = createInterface({ input: stdin, output: stderr, terminal: true });
  const above = question.slice(0, question.lastIndexOf("\n") + 1);
  stderr.write(above);
  lines.setPrompt(`${question.slice(above.length)} [y/N] `);
  lines.prompt();
  const answer = await new Promise<string>((resolve) => {
    let isAnswered = false;
    lines.once("line", (line) => {
      isAnswered = true;
      resolve(line);
    });
    // Without a listener for SIGINT, readline closes at Ctrl-C just as at the end of input.
    lines.once("close", () => {
      if (!isAnswered) stderr.write("\n");
      resolve("");
    });
  });
  lines.close();
  if (/^y(es)?$/i.test(answer.trim())) return;
  throw new UsageError("Not confirmed, so nothing was done.");
}
