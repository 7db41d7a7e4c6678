import { loadOwnConfig } from "../config.ts";
import type { LoadedConfig } from "../config.ts";
import { createLog } from "../platform/log.ts";
import type { LogLevel } from "../platform/log.ts";
import { createRuntime } from "../runtime.ts";
import type { Runtime } from "../runtime.ts";
import { withServiceAdvice } from "./service-advice.ts";

/** What a command may use of the process around it. */
export interface CliContext {
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly stdin: NodeJS.ReadStream;
  /** Reads the environment and the `.env` file where the command was called, once. Throws `ConfigurationError`. */
  loaded(): LoadedConfig;
  /** Runs with everything a command needs and closes it afterwards, whatever happens. */
  withRuntime<T>(
    name: string,
    run: (runtime: Runtime) => Promise<T>,
    options?: RuntimeOptions,
  ): Promise<T>;
}

export interface RuntimeOptions {
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
    loaded: load,
    async withRuntime(name, run, options = {}) {
      const used = options.loaded ?? load();
      const log =
        options.logLevel === undefined
          ? createLog({ level: used.config.logLevel, name })
          : createLog({ level: options.logLevel, name, destination: process.stderr });
      const runtime = createRuntime(used, log);
      try {
        return await run(runtime);
      } catch (error) {
        throw withServiceAdvice(error, used.config);
      } finally {
        await runtime.close();
      }
    },
  };
}
