import type { AlertFact, AlertMessage } from "../message.ts";
import { headlineOf, wordsOfAction } from "./headline.ts";
import { shortMark } from "./message-keys.ts";
import { oneLine, safeLink } from "./plain-text.ts";

// A mail stays small whatever it tells of.
const maxFacts = 60;
const maxItems = 100;
const maxFactsOfItem = 8;
const maxValue = 400;

const factLine = ({ label, value }: AlertFact): string =>
  `${oneLine(label, 80)}: ${oneLine(value, maxValue)}`;

const footerOf = (message: AlertMessage): string =>
  [wordsOfAction[message.action], message.rule, message.stage, message.at, shortMark(message)]
    .map((part) => oneLine(part, 100))
    .join(" · ");

const moreItems = (count: number): string[] =>
  count > maxItems ? [`… and ${count - maxItems} more.`] : [];

/** The body in plain text. */
export function alertText(message: AlertMessage): string {
  const { facts, items = [], advice, links } = message;
  const paragraphs = [
    oneLine(headlineOf(message), 500),
    facts.slice(0, maxFacts).map(factLine).join("\n"),
    items
      .slice(0, maxItems)
      .map(({ title, facts: told }) =>
        [
          `- ${oneLine(title, 300)}`,
          ...told.slice(0, maxFactsOfItem).map((fact) => `  ${factLine(fact)}`),
        ].join("\n"),
      )
      .join("\n"),
    ...moreItems(items.length),
    advice === "" ? "" : `What to do: ${oneLine(advice, 2_000)}`,
    links.flatMap(linkLine).join("\n"),
    footerOf(message),
  ];
  return `${paragraphs.filter((paragraph) => paragraph !== "").join("\n\n")}\n`;
}

function linkLine({ label, url }: { label: string; url: string }): string[] {
  const link = safeLink(url);
  return link === null ? [] : [`${oneLine(label, 80)}: ${link}`];
}

const colours = { critical: "#b3261e", error: "#b3261e", warning: "#8a6100", info: "#1f5fa8" };
const resolvedColour = "#1b6e3c";

/** The same in HTML, with styles in place: mail programs know no style sheets. */
export function alertHtml(message: AlertMessage): string {
  const { facts, items = [], advice, links } = message;
  const colour = message.action === "resolve" ? resolvedColour : colours[message.severity];
  const parts = [
    `<h2 style="color:${colour};font-size:18px">${html(headlineOf(message), 500)}</h2>`,
    facts.length === 0 ? "" : factTable(facts.slice(0, maxFacts)),
    ...items
      .slice(0, maxItems)
      .map(
        ({ title, facts: told }) =>
          `<h3 style="font-size:15px">${html(title, 300)}</h3>${factTable(told.slice(0, maxFactsOfItem))}`,
      ),
    ...moreItems(items.length).map((text) => `<p>${html(text, 100)}</p>`),
    advice === "" ? "" : `<p><b>What to do:</b> ${html(advice, 2_000)}</p>`,
    links.flatMap(anchor).join(" · "),
    `<p style="color:#666;font-size:12px">${html(footerOf(message), 500)}</p>`,
  ];
  return `<!doctype html><html lang="en"><body style="font-family:sans-serif">${parts.join("")}</body></html>`;
}

const factTable = (facts: readonly AlertFact[]): string =>
  `<table>${facts.map(factRow).join("")}</table>`;

const factRow = ({ label, value }: AlertFact): string =>
  `<tr><th align="left" style="padding-right:12px">${html(label, 80)}</th><td>${html(value, maxValue)}</td></tr>`;

function anchor({ label, url }: { label: string; url: string }): string[] {
  const link = safeLink(url);
  return link === null ? [] : [`<a href="${html(link, 2_000)}">${html(label, 80)}</a>`];
}

const html = (text: string, max: number): string =>
  oneLine(text, max).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
