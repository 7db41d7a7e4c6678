import { type RunListener, nobodyListens } from "../run-listener.ts";
import type { Runtime } from "../runtime.ts";

/** The listener of the part that has one. Throws `ConfigurationError` for wrong settings of alerts. */
export async function listenerOf(runtime: Runtime): Promise<RunListener> {
  const [part] = runtime.parts.filter(({ listener }) => listener !== undefined);
  return (await part?.listener?.(runtime)) ?? nobodyListens;
}
