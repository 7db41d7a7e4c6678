import { tallyhook } from "../../../../platform/command-line.ts";
import { recordAct } from "../../../people/audit.ts";
import { revoke } from "../../../people/revoke.ts";
import { type ListedSession, listSessions } from "../../../people/sessions.ts";
import { inTransaction } from "../../../../platform/postgres/transactions.ts";
import { counted } from "../../../../platform/readable-text.ts";
import type { PageGroup } from "../../page-group.ts";
import { PageError, type Route, type Theme, type Visitor, themes } from "../../route.ts";
import { permissions } from "../../../people/permissions.ts";
import { type Html, html } from "../../../../platform/html.ts";
import { ago } from "../../elements/values.ts";

const routes: readonly Route[] = [
  {
    method: "GET",
    path: "/me",
    access: "signed-in",
    async answer({ db, clock, timeZone }, { visitor, theme }) {
      const sessions = await listSessions(db, visitor.session.accountId, clock.now());
      return {
        kind: "page",
        title: "Your account",
        body: renderAccount({ visitor, sessions, theme, timeZone }),
        command: tallyhook(`users show ${visitor.session.email}`),
      };
    },
  },
  {
    method: "POST",
    path: "/me/theme",
    access: "signed-in",
    async answer(_, { form }) {
      const theme = themes.find((name) => name === form.get("theme"));
      if (theme === undefined) throw new PageError(400, "Choose light, dark, or as the system has it.");
      return { kind: "redirect", to: "/me", theme };
    },
  },
  {
    method: "POST",
    path: "/me/sessions/:id/end",
    access: "signed-in",
    async answer({ db }, { visitor: { session }, actor, params }) {
      const { id = "" } = params;
      const ended = await inTransaction(db, async (trx) => {
        const done = (await revoke(trx, session.accountId, "session.ended", id)) > 0;
        if (done)
          await recordAct(trx, actor, {
            action: "session.ended",
            subject: { kind: "session", id },
          });
        return done;
      });
      if (!ended) throw new PageError(404, "This session has ended already, or belongs to another account.");
      return { kind: "redirect", to: "/me", notice: "The session has ended." };
    },
  },
  {
    method: "POST",
    path: "/me/sessions/end-others",
    access: "signed-in",
    async answer({ db }, { visitor: { session }, actor }) {
      const count = await inTransaction(db, async (trx) => {
        const ended = await revoke(trx, session.accountId, "other-sessions.ended", session.id);
        await recordAct(trx, actor, { action: "session.ended", after: { others: ended } });
        return ended;
      });
      return { kind: "redirect", to: "/me", notice: `${counted(count, "session")} ended.` };
    },
  },
];

/** The visitor's own account: roles and sessions. */
export const mePages: PageGroup = { place: null, routes };

interface AccountPage {
  visitor: Visitor;
  sessions: readonly ListedSession[];
  theme: Theme;
  timeZone: string;
}

const methods = {
  password: "with a password",
  link: "with a link",
  oidc: "by the company's sign-in",
  proxy: "by the proxy",
} as const;

const themeNames: Readonly<Record<Theme, string>> = {
  system: "As the system",
  light: "Light",
  dark: "Dark",
};

const renderThemes = (current: Theme): Html =>
  html`<form class="card" method="post" action="/me/theme">
    <fieldset>
      <legend>Colours, in this browser</legend>
      ${themes.map(
        (theme) =>
          html`<label class="choice">
            <input type="radio" name="theme" value="${theme}" ${theme === current && html`checked`} />
            ${themeNames[theme]}
          </label>`,
      )}
    </fieldset>
    <button class="second">Use these</button>
  </form>`;

function renderAccount({ visitor, sessions, theme, timeZone }: AccountPage): Html {
  const { session } = visitor;
  return html`<section class="card">
      <h2>${session.email}</h2>
      <dl class="facts">
        <dt>Roles</dt>
        <dd>${session.roles.join(", ") || "none"}</dd>
        <dt>You may</dt>
        <dd>
          <details>
            <summary>${counted(visitor.permissions.size, "thing")}</summary>
            <ul>
              ${[...visitor.permissions].map((name) => html`<li>${permissions[name]}</li>`)}
            </ul>
          </details>
        </dd>
      </dl>
    </section>
    <section>
      <div class="scroll" tabindex="0" role="region" aria-label="Your sessions">
        <table>
          <caption>
            Where you are signed in
          </caption>
          <thead>
            <tr>
              <th scope="col">Began</th>
              <th scope="col">Last used</th>
              <th scope="col">From</th>
              <th scope="col">How</th>
              <th scope="col"><span class="hidden">What you can do</span></th>
            </tr>
          </thead>
          <tbody>
            ${sessions.map((each) => renderSession(each, session.id, timeZone))}
          </tbody>
        </table>
      </div>
    </section>
    <form method="post" action="/me/sessions/end-others">
      <button class="second">End all other sessions</button>
    </form>
    ${renderThemes(theme)}
    <section class="needs-script">
      <h2>Keys</h2>
      <p class="lead">
        <kbd>?</kbd> lists the keys that move through rows and pages. They work in this browser until you turn them off.
      </p>
      <p><button type="button" class="second" data-keys-switch>Turn the keys off</button></p>
    </section>`;
}

const renderSession = (session: ListedSession, own: string, timeZone: string): Html =>
  html`<tr>
    <td>${ago(session.beganAt, timeZone)}</td>
    <td>${ago(session.lastSeenAt, timeZone)}</td>
    <td>${session.address}<br /><span class="hint">${session.userAgent}</span></td>
    <td>${methods[session.method]}</td>
    <td>
      ${session.id === own ? html`<span class="state good">this one</span>` : html`<form method="post" action="/me/sessions/${session.id}/end"><button class="plain">End</button></form>`}
    </td>
  </tr>`;
