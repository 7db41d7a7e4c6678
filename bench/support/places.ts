import { fileURLToPath } from "node:url";

export const projectRoot = fileURLToPath(new URL("../../", import.meta.url));

/** Inside the project, not in the system's temporary folder: that may be in memory, where fsync costs nothing. */
export const benchDirectory = `${projectRoot}.data/bench`;
