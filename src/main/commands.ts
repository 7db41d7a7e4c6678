import { type Argument, type Command, InvalidArgumentError, type Option } from "commander";
import type { CliContext } from "../app/cli/context.ts";
import type { CommandModule } from "../app/part.ts";
import { allParts } from "./parts.ts";

/** Those of the processes and of the program as a whole. */
const own: readonly CommandModule[] = [
  {
    lists: {
      "start [options]": "run everything in one process, on embedded defaults where nothing is set, until Ctrl-C",
    },
    load: async () => (await import("./cli/start.ts")).registerStart,
  },
  {
    lists: { receiver: "verify webhooks and store them in the inbox, until a signal" },
    load: async () => (await import("./cli/receiver.ts")).registerReceiver,
  },
  {
    lists: { worker: "apply stored events, run the schedules and send alerts, until a signal" },
    load: async () => (await import("./cli/worker.ts")).registerWorker,
  },
  {
    lists: { "dashboard [options]": "serve the web pages: what happens, what is wrong, what to do; until a signal" },
    load: async () => (await import("./cli/dashboard.ts")).registerPages,
  },
  {
    lists: { "migrate [options]": "bring the schema of the database up to date, and that of the job queue in it" },
    load: async () => (await import("./cli/migrate.ts")).registerMigrate,
  },
  {
    lists: { "roles [options]": "print the SQL that gives each process a database role of its own; needs no database" },
    load: async () => (await import("./cli/roles/roles.ts")).registerRoles,
  },
  {
    lists: {
      "upgrade [options]": "say what migrate would do to the database, or rehearse it on a copy; changes nothing",
    },
    load: async () => (await import("./cli/upgrade/upgrade.ts")).registerUpgrade,
  },
  {
    lists: {
      "backup [options] <directory>":
        "write everything that cannot be rebuilt, as of now, into a new folder, and verify it",
    },
    load: async () => (await import("./cli/backup/backup.ts")).registerBackup,
  },
  {
    lists: {
      "restore [options] <backup>": "fill an empty database from a backup, so that nothing is sent or done twice",
      "restored [options]": "the same for a database that was restored by other means, such as a snapshot",
    },
    load: async () => (await import("./cli/backup/restore.ts")).registerRestore,
  },
  {
    lists: {
      "doctor [options]":
        "check configuration, database, queue, receivers, workers, secrets, proof, service, " +
        "clock, endpoint, alert channels and destinations of forwarding, and say what to do; exit " +
        "2 if a check failed",
    },
    load: async () => (await import("./cli/doctor/doctor.ts")).registerDoctor,
  },
  {
    lists: {
      "settings [options]": "every setting: what it is for, its value here, and where that comes from; no secret",
    },
    load: async () => (await import("./cli/settings.ts")).registerSettings,
  },
  {
    lists: { "metrics [options]": "every metric that processes serve: what it counts, its labels, its alerts" },
    load: async () => (await import("./cli/metrics.ts")).registerMetrics,
  },
  {
    lists: { secrets: "signing secrets; running receivers follow a change within 5 s" },
    load: async () => (await import("./cli/secrets.ts")).registerSecrets,
  },
  {
    lists: { signature: "why a webhook does or does not verify" },
    load: async () => (await import("./cli/signature.ts")).registerSignatureExplain,
  },
  {
    lists: { users: "the people who may sign in to the dashboard" },
    load: async () => (await import("./cli/users.ts")).registerUsers,
  },
  {
    lists: { audit: "what people did, on the dashboard and by commands that change something" },
    load: async () => (await import("./cli/audit.ts")).registerAudit,
  },
  {
    lists: { customers: "the people in the mirror" },
    load: async () => (await import("./cli/customers.ts")).registerCustomers,
  },
];

/** In the order in which help lists them. */
export const commandModules: readonly CommandModule[] = [...own, ...allParts.flatMap(({ commands = [] }) => commands)];

/** The first words of the commands of a module. */
export const calledBy = ({ lists }: CommandModule): string[] => Object.keys(lists).map(nameIn);

const nameIn = (call: string): string => call.split(" ")[0] ?? "";

/**
 * Registers the command that a command line begins with, so that a receiver does not load the code of the sandbox and
 * the reports; none for the version. A line that names none, as for help, gets the list of all of them, and no code.
 */
export async function registerCommands(program: Command, context: CliContext, argv: readonly string[]): Promise<void> {
  const [first = "", second = ""] = argv.filter((word) => word !== "--");
  if (first === "--version" || first === "-V") return;
  const name = first === "help" ? second : first;
  const module = commandModules.find((each) => calledBy(each).includes(name));
  if (module === undefined) {
    for (const { lists } of commandModules) {
      for (const [call, does] of Object.entries(lists)) program.command(call).description(does);
    }
    return;
  }
  await registerModules(program, context, [module]);
}

/** Registers the commands of these modules, whole. */
export async function registerModules(
  program: Command,
  context: CliContext,
  modules: readonly CommandModule[],
): Promise<void> {
  for (const register of await Promise.all(modules.map(({ load }) => load()))) register(program, context);
  const listed = modules.flatMap(({ lists }) => Object.entries(lists));
  const does = new Map(listed.map(([call, text]) => [nameIn(call), text]));
  for (const command of program.commands) command.description(does.get(command.name()) ?? "");
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
