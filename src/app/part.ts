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
  /** The first words of its commands. */
  readonly names: readonly string[];
  /** Loaded when one of them is called, or help lists all. */
  load(): Promise<(program: Command, context: CliContext) => void>;
}
