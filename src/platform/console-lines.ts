import type { RateLimitedWarnings } from "./rate-limited-warnings.ts";

const methods = ["debug", "error", "info", "log", "warn"] as const;

/**
 * Turns what libraries print to the console into lines of the log, until the returned function is called. Rate limited,
 * since a driver may print with every connection.
 */
export function logConsole(warn: RateLimitedWarnings): () => void {
  const former = methods.map((method) => [method, console[method]] as const);
  for (const method of methods) {
    console[method] = (...printed: unknown[]) =>
      warn("a library printed a line", { line: printed.map(String).join(" ").slice(0, 500) });
  }
  return () => {
    for (const [method, print] of former) console[method] = print;
  };
}
