import type { Command } from "commander";
import { InvalidArgumentError } from "commander";
import type { CliContext } from "./context.ts";
import { listOwnEndpoints } from "./endpoint/list.ts";
import type { ListOptions } from "./endpoint/list.ts";
import { registerOwnEndpoint } from "./endpoint/register.ts";
import type { RegisterOptions } from "./endpoint/register.ts";
import { removeOwnEndpoint } from "./endpoint/remove.ts";
import type { RemoveOptions } from "./endpoint/remove.ts";
import { rotateOwnSecret } from "./endpoint/rotate.ts";
import type { RotateOptions } from "./endpoint/rotate.ts";
import { testOwnEndpoint } from "./endpoint/test.ts";
import type { TestOptions } from "./endpoint/test.ts";
import { wholeNumber } from "./whole-number.ts";

const longestGraceHours = 24 * 30;

export function registerEndpoint(program: Command, context: CliContext): void {
  const endpoint = program
    .command("endpoint")
    .description("this deployment's webhook endpoint at the service");

  endpoint
    .command("register")
    .description("make the endpoint at the service and store its signing secret, encrypted")
    .option("--url <url>", "its address (default: PUBLIC_URL with /webhooks)", webUrl)
    .option("--events <list>", "event types to subscribe to, separated by commas", eventTypes, [
      "*",
    ])
    .option("--api-version <version>", "pin the schema of its events (default: the newest)")
    .option("--description <text>", "what the service's list shows for it")
    .action((options: RegisterOptions) => registerOwnEndpoint(context, options));

  endpoint
    .command("list")
    .description("the account's endpoints, and what is wrong with this deployment's")
    .option("--json", "print JSON")
    .action((options: ListOptions) => listOwnEndpoints(context, options));

  endpoint
    .command("rotate")
    .description("replace the signing secret; a rotation that was interrupted is finished")
    .argument("[id]", "which one; needed only when there are several")
    .option(
      "--grace-hours <n>",
      "for how long the service signs with the former secret as well",
      graceHours,
    )
    .action((id: string | undefined, options: RotateOptions) =>
      rotateOwnSecret(context, id, options),
    );

  endpoint
    .command("test")
    .description("have the service send a test event, and wait until it is in the inbox")
    .argument("[id]", "which one; needed only when there are several")
    .option("--wait <seconds>", "how long to wait for it", seconds, 15)
    .action((id: string | undefined, options: TestOptions) =>
      testOwnEndpoint(context, id, options),
    );

  endpoint
    .command("remove")
    .description("remove an endpoint at the service, after asking; deliveries to it stop at once")
    .argument("<id>", "as shown by list")
    .option("--yes", "do not ask")
    .action((id: string, options: RemoveOptions) => removeOwnEndpoint(context, id, options));
}

function webUrl(text: string): string {
  if (/^https?:\/\//i.test(text) && URL.canParse(text)) return text;
  throw new InvalidArgumentError(
    "Use the whole address, such as https://hooks.example.com/webhooks.",
  );
}

function eventTypes(text: string): string[] {
  const types = text.split(",").map((item) => item.trim());
  if (types.every((type) => type !== "")) return types;
  throw new InvalidArgumentError(
    "Use types separated by commas, such as order.created,order.refunded; * stands for all.",
  );
}

const graceHours = wholeNumber(1, longestGraceHours, "hours");
const seconds = wholeNumber(1, 600, "seconds");
