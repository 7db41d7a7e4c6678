import { tallyhook } from "../../../../platform/command-line.ts";
import type { Account } from "../../../people/accounts.ts";
import { type Permission, type Role, permissions, roles } from "../../../people/permissions.ts";
import type { ListedSession, SessionOfAccount, SignInMethod } from "../../../people/sessions.ts";
import { type Html, html } from "../../../../platform/html.ts";
import { decidedOn } from "../../elements/decided-on.ts";
import { state, time, ago } from "../../elements/values.ts";
import { type TableColumn, table } from "../../elements/table.ts";
import type { Visitor } from "../../route.ts";
import { tabs } from "./sections.ts";

interface UsersPage {
  accounts: readonly Account[];
  visitor: Visitor;
  timeZone: string;
}

export function renderUsers({ accounts, visitor, timeZone }: UsersPage): Html {
  return html`${tabs(visitor, "/admin/users")}
    ${table<Account>(
      [
        {
          name: "E-mail",
          cell: ({ id, email }) => html`<a href="/admin/users/${id}">${email}</a>`,
        },
        { name: "Roles", cell: ({ roles: names }) => names.join(", ") || "none" },
        { name: "Signs in with", cell: waysOf },
        { name: "State", cell: stateOf },
        { name: "Since", cell: ({ createdAt }) => time(createdAt, timeZone) },
      ],
      accounts,
      {
        caption: "Accounts",
        empty: html`No one may sign in yet. <code>${tallyhook("users add EMAIL --role admin")}</code>`,
      },
    )}
    <form class="card narrow" method="post" action="/admin/users">
      <h2>Add a person</h2>
      <div>
        <label for="email">E-mail address</label>
        <input id="email" name="email" type="email" autocomplete="off" required />
      </div>
      ${roleBoxes(["viewer"])}
      <label class="choice">
        <input type="checkbox" name="link" value="yes" checked />
        <span>
          Show me a link that signs them in once
          <span class="hint">
            Not needed by those who sign in with the company's account. A password is set on the command line:
            <code>${tallyhook("users password EMAIL")}</code>
          </span>
        </span>
      </label>
      <button>Add</button>
    </form>`;
}

interface UserPage {
  account: Account;
  sessions: readonly ListedSession[];
  visitor: Visitor;
  timeZone: string;
}

export function renderUser({ account, sessions, visitor, timeZone }: UserPage): Html {
  const { id, email, version, disabledAt } = account;
  const isSelf = id === visitor.session.accountId;
  return html`${tabs(visitor, "/admin/users")}
    <section class="card">
      <dl class="facts">
        <dt>State</dt>
        <dd>${stateOf(account)}${disabledAt !== null && html` since ${time(disabledAt, timeZone)}`}</dd>
        <dt>Signs in with</dt>
        <dd>${waysOf(account)}</dd>
        <dt>Since</dt>
        <dd>${time(account.createdAt, timeZone)}</dd>
        ${
          visitor.permissions.has("audit:read") &&
          html`<dt>Audit</dt>
            <dd class="row">
              <a href="/admin/audit?by=${encodeURIComponent(email)}">what they did</a>
              <a href="/admin/audit?kind=account&amp;id=${encodeURIComponent(email)}">what was done to the account</a>
            </dd>`
        }
      </dl>
      <div class="row">
        ${disabledAt === null && html`<form method="post" action="/admin/users/${id}/link"><button class="second">Make a link that signs in once</button></form>`}
        ${
          !isSelf &&
          html`<form
            class="end"
            method="post"
            action="/admin/users/${id}/${disabledAt === null ? "disable" : "enable"}"
          >
            ${decidedOn(version)}
            ${disabledAt === null ? html`<button class="danger">Disable</button>` : html`<button class="second">Enable</button>`}
          </form>`
        }
      </div>
    </section>
    <form class="card" method="post" action="/admin/users/${id}/roles">
      <h2>Permissions of this person</h2>
      ${account.issuer !== null && html`<p class="hint">This person signs in with the company's account, which sets their roles at each sign-in: a change here lasts until the next one.</p>`}
      ${decidedOn(version)} ${roleBoxes(account.roles)}
      <button>Save the roles</button>
    </form>
    ${table(
      sessionColumns(timeZone, (session: ListedSession) =>
        session.id === visitor.session.id
          ? state("this one", "good")
          : html`<form method="post" action="/admin/sessions/${session.id}/end">
              <button class="plain">End</button>
            </form>`,
      ),
      sessions,
      { caption: "Where they are signed in", empty: html`${email} is signed in nowhere.` },
    )}
    ${sessions.length > 1 && html`<form method="post" action="/admin/users/${id}/end-sessions"><button class="second">End all${isSelf && " other"} sessions</button></form>`}`;
}

interface SessionsPage {
  sessions: readonly SessionOfAccount[];
  mostSessions: number;
  visitor: Visitor;
  timeZone: string;
}

export function renderSessions({ sessions, mostSessions, visitor, timeZone }: SessionsPage): Html {
  return html`${tabs(visitor, "/admin/sessions")}
  ${table<SessionOfAccount>(
    [
      {
        name: "Who",
        cell: ({ account }) => html`<a href="/admin/users/${account.id}">${account.email}</a>`,
      },
      ...sessionColumns(timeZone, (session: SessionOfAccount) =>
        session.id === visitor.session.id
          ? state("this one", "good")
          : html`<form method="post" action="/admin/sessions/${session.id}/end">
              <button class="plain">End<span class="hidden"> this session of ${session.account.email}</span></button>
            </form>`,
      ),
    ],
    sessions,
    { caption: "Most recently used first", empty: html`No one is signed in.` },
  )}
  ${sessions.length >= mostSessions && html`<p class="hint">Older sessions are not shown here. Each user's page shows all of theirs.</p>`}`;
}

function sessionColumns<Row extends ListedSession>(timeZone: string, end: (row: Row) => Html): TableColumn<Row>[] {
  return [
    { name: "Began", cell: ({ beganAt }) => ago(beganAt, timeZone) },
    { name: "Last used", cell: ({ lastSeenAt }) => ago(lastSeenAt, timeZone) },
    {
      name: "From",
      cell: ({ address, userAgent }) => html`${address}<br /><span class="hint">${userAgent}</span>`,
    },
    { name: "How", cell: ({ method }) => methods[method] },
    { name: "End it", cell: end },
  ];
}

const methods: Readonly<Record<SignInMethod, string>> = {
  password: "with a password",
  link: "with a link",
  oidc: "by the company's sign-in",
  proxy: "by the proxy",
};

const stateOf = ({ disabledAt }: Account): Html =>
  disabledAt === null ? state("can sign in", "good") : state("disabled", "warn");

function waysOf({ hasPassword, hasTotp, issuer }: Account): string {
  const ways = [hasPassword && "password", hasTotp && "code of an app", issuer];
  return ways.filter((way) => typeof way === "string").join(", ") || "a link";
}

const roleBoxes = (checked: readonly Role[]): Html =>
  html`<fieldset>
    <legend>Roles</legend>
    ${(Object.keys(roles) as Role[]).map(
      (name) =>
        html`<label class="choice">
          <input type="checkbox" name="role" value="${name}" ${checked.includes(name) && html`checked`} />
          <span>${name} <span class="hint">${mayText(name)}</span></span>
        </label>`,
    )}
  </fieldset>`;

/** The rights that it adds to a viewer's. */
const mayText = (role: Role): string =>
  (roles[role] as readonly Permission[])
    .filter((name) => role === "viewer" || !(roles.viewer as readonly Permission[]).includes(name))
    .map((name) => permissions[name])
    .join("; ");
