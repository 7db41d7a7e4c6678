/** The program as built: `tallyhook receiver`, `tallyhook worker`. */
import { main } from "../../src/main/main.ts";

process.exitCode = await main(process.argv, "bench");
