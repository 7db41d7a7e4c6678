import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { confirm } from "../../../src/app/cli/confirm.ts";
import type { CliContext } from "../../../src/app/cli/context.ts";
import { UsageError } from "../../../src/platform/errors.ts";

/** What the question came to, with what was shown; `typed` is what comes from the terminal. */
async function ask(typed: string | null, { isTTY = true } = {}) {
  const [stdin, stderr] = [new PassThrough(), new PassThrough()];
  const context = { stdin: Object.assign(stdin, { isTTY }), stderr };
  if (typed === null) stdin.end();
  else stdin.write(typed);
  const error: unknown = await confirm(
    context as unknown as Pick<CliContext, "stdin" | "stderr">,
    "Remove it for good?",
  ).then(
    () => null,
    (reason: unknown) => reason,
  );
  return { error, shown: String((stderr.read() as Buffer | null) ?? "") };
}

test.each(["y\r", "yes\r", " Y \n", "YES\n"])("goes on after %j", async (typed) => {
  const { error, shown } = await ask(typed);
  expect(error).toBeNull();
  expect(shown).toContain("Remove it for good? [y/N] ");
});

const ctrlC = "\u0003";
test.each(["n\r", "\r", "yess\r", "no\ry\r", "not yet\r", ctrlC, `y${ctrlC}`, null])(
  "does nothing after %j",
  async (typed) => {
    const { error } = await ask(typed);
    expect(error).toBeInstanceOf(UsageError);
    expect((error as Error).message).toBe("Not confirmed, so nothing was done.");
  },
);

test("is refused without a terminal, whatever is piped in, and names --yes", async () => {
  const { error, shown } = await ask("y\n", { isTTY: false });
  expect(error).toBeInstanceOf(UsageError);
  expect((error as Error).message).toMatch(/not a terminal.*--yes/);
  expect(shown).toBe("");
});
