import { fileURLToPath } from "node:url";

export const projectRoot = fileURLToPath(new URL("../../", import.meta.url));

/** Beside the code, not in the system's place for temporary files: that may be memory, where fsync is free. */
export const benchDirectory = `${projectRoot}.data/bench`;
