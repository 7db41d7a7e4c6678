/** The program itself, as a build runs it: `tallyhook receiver`, `tallyhook worker`. */
import { main } from "../../src/main/main.ts";

process.exitCode = await main(process.argv, "bench");
