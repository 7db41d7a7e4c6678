import { type Html, html } from "../../platform/html.ts";
import { type Place, type Search, areas } from "./page-group.ts";
import type { OpenCount, OpenCounts } from "./open-counts.ts";
import type { Theme, Visitor } from "./route.ts";

export interface Shell {
  title: string;
  body: Html;
  visitor: Visitor | null;
  theme: Theme;
  /** The path of the page, to mark its place. */
  path: string;
  /** Shown once, after a change. */
  notice: string | null;
  command: string | null;
  assets: { style: string; script: string };
  /** Null: connected to a real service. */
  banner: string | null;
  now: Date;
  /** The pages in the order in which they are named at the side of each. */
  places: readonly Place[];
  /** The number of open matters of each page. */
  counts: OpenCounts;
  /** Null: nothing can be searched. */
  search: Search | null;
  /** The text of the search that this page answers. */
  searched: string;
}

/** A whole page. Works without script. */
export function renderPage(shell: Shell): string {
  const { title, body, visitor, theme, notice, command, assets, banner, now } = shell;
  return html`<!doctype html>
    <html lang="en" ${theme !== "system" && html`class="${theme}"`}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="${theme === "system" ? "light dark" : theme}" />
        <title>${title} – Tallyhook</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href="${assets.style}" />
        <script src="${assets.script}" defer></script>
      </head>
      <body class="${visitor === null ? "signed-out" : "signed-in"}" data-now="${now.toISOString()}">
        <a class="skip" href="#content">Skip to the content</a>
        ${visitor !== null && html`${renderHead(shell, visitor)}${renderSide(shell, visitor)}`}
        <div class="page">
          ${banner !== null && html`<aside class="banner" aria-label="Which service this is">${banner}</aside>`}
          <main id="content" tabindex="-1">
            ${notice !== null && html`<p class="notice" role="status">${notice}</p>`}
            <h1>${title}</h1>
            ${body}
          </main>
          ${command !== null && html`<footer class="foot">The same on the command line: <code>${command}</code></footer>`}
        </div>
      </body>
    </html> `.markup;
}

/** On a phone, the button opens the navigation, which stands at the side elsewhere. It needs no script. */
function renderHead({ search, searched }: Shell, { permissions }: Visitor): Html {
  return html`<header class="head">
    <a class="mark" href="/">Tallyhook</a>
    ${search !== null && permissions.has(search.access) && renderSearch(search, searched)}
    <button type="button" class="second menu" popovertarget="menu">Menu</button>
  </header>`;
}

const renderSearch = ({ path, placeholder }: Search, searched: string): Html =>
  html`<form class="find" method="post" action="${path}" role="search">
    <input
      name="q"
      type="search"
      aria-label="Search"
      placeholder="${placeholder}"
      value="${searched}"
      autocomplete="off"
      spellcheck="false"
      maxlength="255"
      required
    />
    <button class="second">Search</button>
  </form>`;

function renderSide({ path, places, counts }: Shell, { session, permissions }: Visitor): Html {
  const keys = keysOf(places);
  const shown = places.filter(({ access }) => permissions.has(access));
  const listOf = (items: readonly Place[]): Html =>
    html`<ul>
      ${items.map(
        (item) =>
          html`<li>
            <a href="${item.path}" data-key="${keys.get(item) ?? null}" ${isAt(path, item.path) && currentPage}
              >${item.name}</a
            >${renderCount(counts.get(item))}
          </li>`,
      )}
    </ul>`;
  const areaOf = (area: Place["area"]) => shown.filter((place) => place.area === area);
  return html`<nav id="menu" class="side" popover aria-label="Pages">
    ${listOf(areaOf(null))}
    ${areas
      .filter((area) => areaOf(area).length > 0)
      .map(
        (area) =>
          html`<p class="area">${area}</p>
            ${listOf(areaOf(area))}`,
      )}
    <div class="who">
      <a class="me" href="/me" title="${session.email}">${session.email}</a>
      <form method="post" action="/sign-out"><button class="plain">Sign out</button></form>
    </div>
  </nav>`;
}

const renderCount = (count: OpenCount | undefined): Html | null =>
  count === undefined
    ? null
    : html`<span class="count ${count.tone}">${count.n ?? "1,000+"}<span class="hidden"> open</span></span>`;

/** The letter that leads to a place after a "g": the first of its name that no place before it has. */
function keysOf(places: readonly Place[]): ReadonlyMap<Place, string> {
  const taken = new Map<string, Place>();
  for (const place of places) {
    const free = Array.from(place.name.toLowerCase()).find((letter) => /[a-z]/.test(letter) && !taken.has(letter));
    if (free !== undefined) taken.set(free, place);
  }
  return new Map(Array.from(taken, ([letter, place]) => [place, letter]));
}

const currentPage: Html = html`aria-current="page"`;

const isAt = (path: string, item: string): boolean =>
  item === "/" ? path === "/" : path === item || path.startsWith(`${item}/`);
