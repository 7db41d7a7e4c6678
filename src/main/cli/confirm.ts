import { createInterface } from "node:readline/promises";
import { UsageError } from "../../platform/errors.ts";
import type { CliContext } from "./context.ts";

type Terminal = Pick<CliContext, "stdin" | "stderr">;

/**
 * For a command that must not be run unasked. Throws `UsageError` where nobody can answer, so that a script hears at
 * once that it has to say `--yes`, before anything long is done.
 */
export function assertCanAsk({ stdin }: Pick<Terminal, "stdin">): void {
  if (stdin.isTTY) return;
  throw new UsageError(
    "This command asks before it goes on, and standard input is not a terminal. Add --yes to answer beforehand.",
  );
}

/**
 * Asks a question that ends in a question mark and returns after "y" or "yes". Throws `UsageError` after any other
 * answer, after Ctrl-C and at the end of input: nothing was done. The question goes to standard error, so that
 * standard output holds the result alone.
 */
export async function confirm({ stdin, stderr }: Terminal, question: string): Promise<void> {
  assertCanAsk({ stdin });
  const lines = createInterface({ input: stdin, output: stderr, terminal: true });
  lines.setPrompt(`${question} [y/N] `);
  lines.prompt();
  const answer = await new Promise<string>((resolve) => {
    let isAnswered = false;
    lines.once("line", (line) => {
      isAnswered = true;
      resolve(line);
    });
    // Without a listener for SIGINT, readline closes at Ctrl-C as it does at the end of input.
    lines.once("close", () => {
      if (!isAnswered) stderr.write("\n");
      resolve("");
    });
  });
  lines.close();
  if (/^y(es)?$/i.test(answer.trim())) return;
  throw new UsageError("Not confirmed, so nothing was done.");
}
