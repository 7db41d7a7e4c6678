import { type Html, html } from "../../platform/html.ts";
import type { Place } from "./page-group.ts";
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
  /** The pages in the order in which they are named at the side of each. */
  places: readonly Place[];
}

/** A whole page. Works without script. */
export function renderPage(shell: Shell): string {
  const { title, body, visitor, theme, notice, command, assets, banner } = shell;
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
      <body class="${visitor === null ? "signed-out" : "signed-in"}">
        <a class="skip" href="#content">Skip to the content</a>
        ${visitor !== null && renderSide(shell, visitor)}
        <div class="page">
          ${banner !== null && html`<p class="banner">${banner}</p>`}
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

function renderSide({ path, places }: Shell, { session, permissions }: Visitor): Html {
  const keys = keysOf(places);
  const items = places.filter(({ access }) => permissions.has(access));
  return html`<header class="side">
    <a class="mark" href="/">Tallyhook</a>
    <nav aria-label="Pages">
      <ul>
        ${items.map(
          (item) =>
            html`<li>
              <a href="${item.path}" data-key="${keys.get(item) ?? null}" ${isAt(path, item.path) && currentPage}
                >${item.name}</a
              >
            </li>`,
        )}
      </ul>
    </nav>
    <div class="who">
      <a href="/me" title="${session.email}">${session.email}</a>
      <form method="post" action="/sign-out"><button class="plain">Sign out</button></form>
    </div>
  </header>`;
}

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
