import { ServiceRefusedError, ServiceUnavailableError } from "../../core/client/service-errors.ts";
import { tallyhook } from "../../platform/command-line.ts";
import { ConfigurationError, UnreachableError } from "../../platform/errors.ts";
import type { LogLevel } from "../../platform/log.ts";
import { withRoleAdvice } from "../../platform/postgres/errors.ts";
import { type Config, type LoadedConfig, loadOwnConfig, sudoUser } from "../config/config.ts";
import type { RuntimeSettings } from "../create-runtime.ts";
import type { Runtime, WorkingPart } from "../runtime.ts";
import { type SystemUser, systemUser } from "./acting-person.ts";

/** The parts of its process that a command may use. */
export interface CliContext {
  readonly version: string;
  readonly parts: readonly WorkingPart[];
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly stdin: NodeJS.ReadStream;
  /** The system user that runs the command, for records of its acts. */
  user(): SystemUser;
  /** Reads the environment and the `.env` file of the current directory, once. Throws `ConfigurationError`. */
  loaded(): LoadedConfig;
  /** Calls `run` with everything a command needs and closes it afterwards, even after an error. */
  withRuntime<T>(name: string, run: (runtime: Runtime) => Promise<T>, options?: RuntimeOptions): Promise<T>;
}

export interface RuntimeOptions extends RuntimeSettings {
  /** Overrides LOG_LEVEL. A command that prints results logs warnings only, to standard error. */
  logLevel?: LogLevel;
  loaded?: LoadedConfig;
  /** True where the merchant's code runs, which may use the console. */
  leavesConsole?: boolean;
}

export function createContext(version: string, parts: readonly WorkingPart[]): CliContext {
  let loaded: LoadedConfig | undefined;
  const load = (): LoadedConfig => {
    if (loaded === undefined) {
      loaded = loadOwnConfig();
      for (const warning of loaded.warnings) process.stderr.write(`tallyhook: ${warning}\n`);
    }
    return loaded;
  };
  return {
    version,
    parts,
    stdout: process.stdout,
    stderr: process.stderr,
    stdin: process.stdin,
    user: () => systemUser(sudoUser()),
    loaded: load,
    async withRuntime(name, run, options = {}) {
      const used = options.loaded ?? load();
      // Help, refused arguments and many commands need none of these.
      const { createRateLimitedWarnings, logConsole } = await import("../../platform/rate-limited-warnings.ts");
      const { createLog } = await import("../../platform/log.ts");
      const { createRuntime } = await import("../create-runtime.ts");
      const isForPeople = options.logLevel === undefined && process.stdout.isTTY && used.config.logFormat === "auto";
      const live = isForPeople ? (await import("./live-screen.ts")).createLiveScreen(process.stdout) : null;
      const log =
        options.logLevel === undefined
          ? createLog({ level: used.config.logLevel, name, ...(live === null ? {} : { destination: live }) })
          : createLog({ level: options.logLevel, name, destination: process.stderr });
      const runtime = createRuntime(parts, used, log, { ...options, live });
      const freeConsole =
        options.leavesConsole === true
          ? () => {}
          : logConsole(createRateLimitedWarnings({ log, clock: runtime.wallClock }));
      try {
        return await run(runtime);
      } catch (error) {
        throw withServiceAdvice(withRoleAdvice(error), used.config);
      } finally {
        await runtime.close();
        freeConsole();
        await new Promise<void>((resolve) => log.flush(() => resolve()));
        live?.close();
      }
    },
  };
}

const keyAdvice: Readonly<Record<number, string>> = {
  401: "The service does not know the key: check SVC_API_KEY, and that it is a key of this account and mode",
  403: "The key may not do this: give SVC_API_KEY a key with the right to it",
};

/**
 * Adds advice to an error of the service, for a person. If the service did not answer or refused the key, the advice
 * names its address and what to do.
 */
export function withServiceAdvice(error: unknown, { service, sandbox }: Pick<Config, "service" | "sandbox">): unknown {
  if (error instanceof ServiceRefusedError && service.kind === "remote") {
    const advice = keyAdvice[error.status];
    if (advice === undefined) return error;
    return new ConfigurationError(`${error.message}. ${advice} (SVC_BASE_URL is ${service.baseUrl}).`, {
      cause: error,
    });
  }
  const isUnanswered =
    error instanceof ServiceUnavailableError && error.request.status === null && error.retryAfterMs === null;
  if (!isUnanswered) return error;
  const advice =
    service.kind === "remote"
      ? `SVC_BASE_URL is ${service.baseUrl}: check it, and that this machine reaches it.`
      : `No service is configured, so the sandbox at 127.0.0.1:${sandbox.port} was asked. Start it ` +
        `("${tallyhook("start")}"), or set SVC_BASE_URL and SVC_API_KEY.`;
  return new UnreachableError(`${error.message}. ${advice}`, { cause: error });
}
