/** The sandbox on the port given on the command line, until SIGTERM. */
import { createLog } from "../../src/platform/log.ts";
import { startSandbox } from "../../src/parts/sandbox/start-sandbox.ts";

const log = createLog({ level: "error", name: "sandbox" });
const sandbox = await startSandbox({ port: Number(process.argv[2]), log });
process.on("SIGTERM", () => void sandbox.close().then(() => process.exit(0)));
