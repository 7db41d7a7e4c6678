/** Clears the directories of a run that has ended: see run-directory.ts. */
import { clearRun } from "./run-directory.ts";

const [directory = "", runnersDirectory] = process.argv.slice(2);
await clearRun(directory, runnersDirectory);
