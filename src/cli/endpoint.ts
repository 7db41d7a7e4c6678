import type { Command } from "commander";
import { InvalidArgumentError } from "commander";
import type { CliContext } from "./context.ts";
import { listOwnEndpoints } from "./endpoint/list.ts";
import type { ListOptions } from "./endpoint/list.ts";
import { registerOwnEndpoint } from "./endpoint/register.ts";
import type { RegisterOptions } from "./endpoint/register.ts";
import { removeOwnEndpoint } from "./endpoint/remove.ts";
import { rotateOwnSecret } from "./endpoint/rotate.ts";
import type { RotateOptions } from "./endpoint/rotate.ts";
import { testOwnEndpoint } from "./endpoint/test.ts";
import type { TestOptions } from "./endpoint/test.ts";

const longestGraceHours = 24 * 30;

export function registerEndpoint(program: Command, context: CliContext): void {
  const endpoint = program
    .command("endpoint")
    .description("this deployment's webhook endpoint at the service");

  endpoint
    .command("register")
    .description("make the endpoint and store its signing secret, encrypted")
    .option("--url <url>", "its address (default: PUBLIC_URL and /webhooks)")
    .option("--events <list>", "enabled_events, separated by commas", list, ["*"])
    .option("--api-version <version>", "pin the schema of its events (default: the latest)")
    .option("--description <text>", "for people")
    .action((options: RegisterOptions) => registerOwnEndpoint(context, options));

  endpoint
    .command("list")
    .description("the account's endpoints, and what is wrong with this deployment's")
    .option("--json", "print JSON")
    .action((options: ListOptions) => listOwnEndpoints(context, options));

  endpoint
    .command("rotate")
    .description("replace the signing secret; a rotation that was interrupted is finished")
    .argument("[id]", "when there are several")
    .option("--grace-hours <n>", "how long the former secret signs, too", graceHours)
    .action((id: string | undefined, options: RotateOptions) =>
      rotateOwnSecret(context, id, options),
    );

  endpoint
    .command("test")
    .description("have the service send a test event, and wait until it is in the inbox")
    .argument("[id]", "when there are several")
    .option("--wait <seconds>", "how long", seconds, 15)
    .action((id: string | undefined, options: TestOptions) =>
      testOwnEndpoint(context, id, options),
    );

  endpoint
    .command("remove")
    .description("remove an endpoint at the service; deliveries to it stop at once")
    .argument("<id>", "as shown by list")
    .action((id: string) => removeOwnEndpoint(context, id));
}

const list = (text: string): string[] => text.split(",").map((item) => item.trim());

const whole = (unit: string, most: number) => (text: string) => {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1 || value > most) {
    throw new InvalidArgumentError(`Use a whole number of ${unit} from 1 to ${most}.`);
  }
  return value;
};
const graceHours = whole("hours", longestGraceHours);
const seconds = whole("seconds", 600);
