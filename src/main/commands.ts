import { type Argument, type Command, InvalidArgumentError, type Option } from "commander";
import type { CliContext } from "../app/cli/context.ts";
import type { CommandModule } from "../app/part.ts";
import { allParts } from "./parts.ts";

/** Those of the processes and of the program as a whole. */
const own: readonly CommandModule[] = [
  { names: ["start"], load: async () => (await import("./cli/start.ts")).registerStart },
  { names: ["receiver"], load: async () => (await import("./cli/receiver.ts")).registerReceiver },
  { names: ["worker"], load: async () => (await import("./cli/worker.ts")).registerWorker },
  { names: ["dashboard"], load: async () => (await import("./cli/dashboard.ts")).registerPages },
  { names: ["migrate"], load: async () => (await import("./cli/migrate.ts")).registerMigrate },
  { names: ["roles"], load: async () => (await import("./cli/roles/roles.ts")).registerRoles },
  { names: ["upgrade"], load: async () => (await import("./cli/upgrade/upgrade.ts")).registerUpgrade },
  { names: ["backup"], load: async () => (await import("./cli/backup/backup.ts")).registerBackup },
  { names: ["restore", "restored"], load: async () => (await import("./cli/backup/restore.ts")).registerRestore },
  { names: ["doctor"], load: async () => (await import("./cli/doctor/doctor.ts")).registerDoctor },
  { names: ["settings"], load: async () => (await import("./cli/settings.ts")).registerSettings },
  { names: ["metrics"], load: async () => (await import("./cli/metrics.ts")).registerMetrics },
  { names: ["secrets"], load: async () => (await import("./cli/secrets.ts")).registerSecrets },
  { names: ["signature"], load: async () => (await import("./cli/signature.ts")).registerSignatureExplain },
  { names: ["users"], load: async () => (await import("./cli/users.ts")).registerUsers },
  { names: ["audit"], load: async () => (await import("./cli/audit.ts")).registerAudit },
  { names: ["customers"], load: async () => (await import("./cli/customers.ts")).registerCustomers },
];

/** In the order in which help lists them. */
export const commandModules: readonly CommandModule[] = [...own, ...allParts.flatMap(({ commands = [] }) => commands)];

/**
 * Registers the command that a command line begins with, so that a receiver does not load the code of the sandbox and
 * the reports; none for the version. Registers every command if the line names none, as for help.
 */
export async function registerCommands(
  program: Command,
  context: CliContext,
  [first = "", second = ""]: readonly string[],
): Promise<void> {
  if (first === "--version" || first === "-V") return;
  const name = first === "help" ? second : first;
  const named = commandModules.filter(({ names }) => names.includes(name));
  const wanted = named.length > 0 ? named : commandModules;
  for (const register of await Promise.all(wanted.map(({ load }) => load()))) {
    register(program, context);
  }
  refuseEmptyValues(program);
}

/**
 * Refuses empty values. An empty value usually comes from an unset shell variable, such as `--host "$HOST"`. To the
 * command it could mean something else, such as every address of the machine.
 */
function refuseEmptyValues(command: Command): void {
  for (const option of command.options) if (option.required) refuseEmpty(option);
  for (const argument of command.registeredArguments) refuseEmpty(argument);
  for (const each of command.commands) refuseEmptyValues(each);
}

function refuseEmpty(taker: Option | Argument): void {
  const { parseArg } = taker;
  // Commander collects several values itself if the option has no parser.
  if (taker.variadic && parseArg === undefined) return;
  taker.parseArg = <T>(value: string, previous: T): T => {
    if (value.trim() !== "") {
      return parseArg === undefined ? (value as T) : parseArg(value, previous);
    }
    throw new InvalidArgumentError("It is empty. Is a shell variable unset?");
  };
}
