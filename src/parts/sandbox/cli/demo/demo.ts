import type { Command } from "commander";
import pc from "picocolors";
import { wallClock } from "../../../../platform/clock.ts";
import { startTemporaryServer } from "../../../../platform/embedded/temporary-server.ts";
import { TallyhookError, exitCodes } from "../../../../platform/errors.ts";
import { createLog } from "../../../../platform/log.ts";
import { counted } from "../../../../platform/readable-text.ts";
import { loadConfig } from "../../../../app/config/config.ts";
import { createRuntime } from "../../../../app/create-runtime.ts";
import type { CliContext } from "../../../../app/cli/context.ts";
import { cellsText } from "../../../../app/cli/table.ts";
import { untilSignal } from "../../../../app/cli/until-signal.ts";
import type { ResourceComparison } from "./compare.ts";
import type { DemoResult } from "./prove.ts";

export function registerDemo(program: Command, context: CliContext): void {
  program
    .command("demo")
    .option("--json", "print one JSON object as the last line")
    .option("--seed <text>", "a different seed gives different traffic and faults", "tallyhook")
    .action(async ({ json, seed }: { json?: boolean; seed: string }) => {
      const result = await runDemo(context, seed, json === true);
      if (json === true) context.stdout.write(`${JSON.stringify(result.summary)}\n`);
      else print(context, result);
      if (!result.proved) process.exitCode = exitCodes.differs;
    });
}

/** Uses its own database and sandbox, regardless of the settings, and removes all of it, even after Ctrl-C. */
async function runDemo(context: CliContext, seed: string, quiet: boolean): Promise<DemoResult> {
  const log = createLog({ level: "error", name: "demo", destination: context.stderr });
  const say = (text: string) => {
    if (!quiet) context.stdout.write(`${text}\n`);
  };
  const stop = new AbortController();
  void untilSignal().then((signal) =>
    stop.abort(new TallyhookError(`Stopped by ${signal}. Nothing of the demo is left.`)),
  );
  say("Starting PostgreSQL, sandbox, receiver and worker …");
  const startedAt = wallClock.now();
  const server = await startTemporaryServer({ parent: ".data", kind: "demo", log });
  try {
    const loaded = loadConfig({
      DATABASE_URL: server.url,
      TALLYHOOK_DATA_DIR: server.dataDir,
      HOST: "127.0.0.1",
      PORT: "0",
      ADMIN_PORT: "0",
      SANDBOX_PORT: "0",
      LOG_LEVEL: "error",
    });
    // Loaded on demand, since it is nearly the whole program, which help does not need.
    const { proveRecovery } = await import("./prove.ts");
    const runtime = createRuntime(context.parts, loaded, log);
    try {
      return await proveRecovery(runtime, {
        seed,
        startedAt,
        say,
        signal: stop.signal,
        progressTo: quiet ? null : context.stderr,
      });
    } finally {
      await runtime.close();
    }
  } finally {
    await server.remove();
  }
}

function print({ stdout }: CliContext, result: DemoResult): void {
  const wrong = ({ missing, different }: ResourceComparison) => missing + different;
  const rows = result.after.map((after, n) => {
    const before = result.before[n];
    return [after.resource, after.atService, after.inMirror, before === undefined ? "" : wrong(before), wrong(after)];
  });
  const { summary } = result;
  stdout.write(
    cellsText({ head: ["", "at the service", "in the mirror", "wrong before healing", "wrong after"], rows }),
  );
  stdout.write(
    `${counted(summary.delivered, "webhook")} arrived: ${summary.accepted} new, ` +
      `${counted(summary.duplicate, "duplicate")}, ${summary.rejected} refused (corrupted). ${summary.applied} ` +
      `applied, ${summary.stale} stale. ${summary.seconds} s.\n`,
  );
  for (const { resource, examples } of result.after) {
    for (const example of examples) stdout.write(pc.red(`  ${resource} ${example}\n`));
  }
  stdout.write(result.proved ? pc.green("The mirror equals the service.\n") : pc.red(`Not proved: ${result.why}\n`));
}
