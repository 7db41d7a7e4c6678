/** Clears the directory of a run that has ended: see run-directory.ts. */
import { clearRun } from "./run-directory.ts";

await clearRun(process.argv[2] ?? "");
