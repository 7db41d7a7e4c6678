import type { Command } from "commander";
import type { CliContext } from "./cli/context.ts";
import type { WorkingPart } from "./runtime.ts";

/**
 * A part of the program: its members for the running program (`WorkingPart`), and its commands. It uses core and app, and
 * other parts only by `Answers`, so that each can be deleted with its folder and its lines in `main/parts.ts`.
 */
export interface Part extends WorkingPart {
  readonly commands?: readonly CommandModule[];
}

export interface CommandModule {
  /** What help lists, without its code: each command as it is called, `close [options] <month>`, and what it does. */
  readonly lists: Readonly<Record<string, string>>;
  /** Called when a command line begins with one of them. */
  load(): Promise<(program: Command, context: CliContext) => void>;
}
