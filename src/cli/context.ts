import { loadConfig } from "../config.ts";
import type { LoadedConfig } from "../config.ts";
import { createLog } from "../platform/log.ts";
import type { LogLevel } from "../platform/log.ts";
import { createRuntime } from "../runtime.ts";
import type { Runtime } from "../runtime.ts";

/** What a command may use of the process around it. */
export interface CliContext {
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly stdin: NodeJS.ReadStream;
  /** Reads the environment, once. Throws `ConfigurationError`. */
  loaded(): LoadedConfig;
  /** Runs with everything a command needs and closes it afterwards, whatever happens. */
  withRuntime<T>(
    name: string,
    run: (runtime: Runtime) => Promise<T>,
    options?: RuntimeOptions,
  ): Promise<T>;
}

export interface RuntimeOptions {
  /** Instead of LOG_LEVEL: a command that prints for a person logs warnings only. */
  logLevel?: LogLevel;
  loaded?: LoadedConfig;
}

export function createContext(): CliContext {
  let loaded: LoadedConfig | undefined;
  const load = (): LoadedConfig => {
    if (loaded === undefined) {
      loaded = loadConfig();
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
      const level = options.logLevel ?? used.config.logLevel;
      const runtime = createRuntime(used, createLog({ level, name }));
      try {
        return await run(runtime);
      } finally {
        await runtime.close();
      }
    },
  };
}
