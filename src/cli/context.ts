import { loadOwnConfig, sudoUser } from "../config.ts";
import type { LoadedConfig } from "../config.ts";
import { createLog } from "../platform/log.ts";
import type { LogLevel } from "../platform/log.ts";
import { withRoleAdvice } from "../platform/postgres-errors.ts";
import { createRuntime } from "../runtime.ts";
import type { Runtime, RuntimeSettings } from "../runtime.ts";
import { systemUser } from "./acting-person.ts";
import type { SystemUser } from "./acting-person.ts";
import { withServiceAdvice } from "./service-advice.ts";

/** What a command may use of the process around it. */
export interface CliContext {
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly stdin: NodeJS.ReadStream;
  /** As whom the command runs, for what is kept for the record. */
  user(): SystemUser;
  /** Reads the environment and the `.env` file where the command was called, once. Throws `ConfigurationError`. */
  loaded(): LoadedConfig;
  /** Runs with everything a command needs and closes it afterwards, whatever happens. */
  withRuntime<T>(
    name: string,
    run: (runtime: Runtime) => Promise<T>,
    options?: RuntimeOptions,
  ): Promise<T>;
}

export interface RuntimeOptions extends RuntimeSettings {
  /** Instead of LOG_LEVEL: a command that prints logs warnings only, and beside what it prints: to standard error. */
  logLevel?: LogLevel;
  loaded?: LoadedConfig;
}

export function createContext(): CliContext {
  let loaded: LoadedConfig | undefined;
  const load = (): LoadedConfig => {
    if (loaded === undefined) {
      loaded = loadOwnConfig();
      for (const warning of loaded.warnings) process.stderr.write(`tallyhook: ${warning}\n`);
    }
    return loaded;
  };
  return {
    stdout: process.stdout,
    stderr: process.stderr,
    stdin: process.stdin,
    user: () => systemUser(sudoUser()),
    loaded: load,
    async withRuntime(name, run, options = {}) {
      const used = options.loaded ?? load();
      const log =
        options.logLevel === undefined
          ? createLog({ level: used.config.logLevel, name })
          : createLog({ level: options.logLevel, name, destination: process.stderr });
      const runtime = createRuntime(used, log, options);
      try {
        return await run(runtime);
      } catch (error) {
        throw withServiceAdvice(withRoleAdvice(error), used.config);
      } finally {
        await runtime.close();
        await new Promise<void>((resolve) => log.flush(() => resolve()));
      }
    },
  };
}
