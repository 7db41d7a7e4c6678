import { fileURLToPath } from "node:url";
import { exists } from "../../../platform/files.ts";
import type { Config } from "../../../app/config/config.ts";

/** The merchant's own folder; compiled, a folder without handlers is not there. */
export const ownHandlers = new URL("../../../handlers/", import.meta.url);

/** The folders that handlers are loaded from: the own one where it exists, and that of the configuration. */
export async function handlerFolders({ handlersDir }: Pick<Config, "handlersDir">): Promise<string[]> {
  return [
    ...((await exists(fileURLToPath(ownHandlers))) ? [fileURLToPath(ownHandlers)] : []),
    ...(handlersDir === null ? [] : [handlersDir]),
  ];
}
