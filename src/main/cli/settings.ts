import { type Command, Option } from "commander";
import { withoutControls, wrapped } from "../../platform/readable-text.ts";
import { envExample } from "../../app/config/env-example.ts";
import type { SettingInForce } from "../../app/config/settings-in-force.ts";
import { settingsPage } from "../../app/config/settings-page.ts";
import { topics } from "../../app/config/variables.ts";
import type { CliContext } from "../../app/cli/context.ts";

interface SettingsOptions {
  json?: boolean;
  env?: boolean;
  markdown?: boolean;
}

export function registerSettings(program: Command, context: CliContext): void {
  program
    .command("settings")
    .option("--json", "print JSON")
    .addOption(
      new Option("--env", "print the text of .env.example instead, whatever is set here").conflicts([
        "json",
        "markdown",
      ]),
    )
    .addOption(new Option("--markdown", "print docs/settings.md instead, whatever is set here").conflicts("json"))
    .action(({ json, env, markdown }: SettingsOptions) => {
      context.stdout.write(
        env === true
          ? envExample()
          : markdown === true
            ? settingsPage()
            : json === true
              ? `${JSON.stringify(context.loaded().settings)}\n`
              : inWords(context.loaded().settings),
      );
    });
}

/** By topic; last the secrets of channels and destinations, by names that no topic lists. */
function inWords(settings: readonly SettingInForce[]): string {
  const byName = new Map(settings.map((each) => [each.name, each]));
  const groups = topics.map((topic) => {
    const names = Object.keys(topic.settings);
    const found = names.flatMap((name) => byName.get(name) ?? []);
    for (const name of names) byName.delete(name);
    return { title: topic.title, settings: found };
  });
  return [...groups, { title: "Secrets by names of your own", settings: [...byName.values()] }]
    .filter((group) => group.settings.length > 0)
    .map((group) => `${group.title}\n\n${group.settings.map(paragraph).join("")}`)
    .join("\n");
}

function paragraph({ name, value, source, fallback, should, about }: SettingInForce): string {
  const otherwise = source === "default" || fallback === null ? "" : ` Default: ${fallback}.`;
  const text = wrapped(`${about} It should be ${should}.${otherwise}`, { width: 94 });
  return `  ${name}: ${inForce({ value, source })}\n${text.replaceAll(/^/gm, "      ")}\n`;
}

function inForce({ value, source }: Pick<SettingInForce, "value" | "source">): string {
  if (value === null) return "not set";
  return `${withoutControls(value)}, ${source === "default" ? "the default" : `from ${sources[source]}`}`;
}

const sources: Readonly<Record<Exclude<SettingInForce["source"], "default">, string>> = {
  environment: "the environment",
  ".env": ".env",
  file: "a file of its own",
};
