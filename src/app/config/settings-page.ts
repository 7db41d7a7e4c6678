import { tallyhook } from "../../platform/command-line.ts";
import { wrapped } from "../../platform/readable-text.ts";
import type { Setting } from "../../platform/settings.ts";
import { fallbackText } from "./settings-in-force.ts";
import { secretPrefixes, topics } from "./variables.ts";

const head = `# Settings

For operators: every setting by topic, with its format and its default. This page is generated from the code:
\`${tallyhook("settings --markdown > docs/settings.md")}\`. \`${tallyhook("settings")}\` lists the
values in force in your environment, and where each comes from. [operations.md](operations.md#settings) explains how
settings are read.

A secret can come from a file instead, which \`NAME_FILE\` names. A setting without a default is not set.
`;

const tail = `## Secrets by names of your own

- \`${secretPrefixes.alerts}…\`: secrets of alert channels, by the names that the settings of alerts give them.
- \`${secretPrefixes.forward}…\`: secrets of destinations, by the names that the settings of forwarding give them.
`;

const lineWidth = 120;

/** The page docs/settings.md: a list for each topic. */
export function settingsPage(): string {
  const lists = topics.map(
    ({ title, settings }) =>
      `## ${title}\n\n${Object.entries(settings)
        .map(([name, setting]) => entry(name, setting))
        .join("")}`,
  );
  return [head, ...lists, tail].join("\n");
}

function entry(name: string, { about, should, isSecret, ...setting }: Setting<unknown>): string {
  const fallback = fallbackText(setting.fallback);
  const given = fallback === null ? "" : ` (default \`${fallback}\`)`;
  const text = [
    `- \`${name}\`${isSecret ? " (secret)" : given}.`,
    linked(withCode(about)),
    `It should be ${escaped(should)}.`,
  ].join(" ");
  return `${wrapped(text, { width: lineWidth, indent: "  " })}\n`;
}

/** Names of settings, in backquotes. */
const withCode = (text: string): string => text.replaceAll(/\b[A-Z]+(?:_[A-Z]+)+\b/g, (name) => `\`${name}\``);

/** `docs/page.md, "Heading"` as a link. */
const linked = (text: string): string =>
  text.replaceAll(/docs\/([\w-]+\.md)(?:, "([^"]+)")?/g, (_, page: string, heading?: string) =>
    heading === undefined
      ? `[${page}](${page})`
      : `[${heading}](${page}#${heading
          .toLowerCase()
          .replaceAll(/[^\w -]/g, "")
          .replaceAll(" ", "-")})`,
  );

/** Escapes Markdown's own characters. */
const escaped = (text: string): string => text.replaceAll("*", "\\*");
