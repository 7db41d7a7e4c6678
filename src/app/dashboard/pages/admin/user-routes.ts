import type { Knex } from "knex";
import { tallyhook } from "../../../../platform/command-line.ts";
import {
  adding,
  changingRoles,
  disabling,
  enabling,
  endingSession,
  endingSessions,
  linking,
} from "../../../people/account-acts.ts";
import { type Account, findAccount, findAccountById, listAccounts } from "../../../people/accounts.ts";
import { listAllSessions, listSessions } from "../../../people/sessions.ts";
import { type Html, html } from "../../../../platform/html.ts";
import { counted } from "../../../../platform/readable-text.ts";
import { actRoute } from "../../act-route.ts";
import { PageError, type PageRequest, type Route } from "../../route.ts";
import { renderSessions, renderUser, renderUsers } from "./user-views.ts";

/** The most sessions shown: a session beyond them can be ended at its user. */
const mostSessions = 200;

export const userRoutes = ({ url }: { url: string }): readonly Route[] => [
  {
    method: "GET",
    path: "/admin/users",
    access: "account:read",
    async answer({ db, timeZone }, { visitor }) {
      return {
        kind: "page",
        title: "Users",
        body: renderUsers({ accounts: await listAccounts(db), visitor, timeZone }),
        command: tallyhook("users list"),
      };
    },
  },
  actRoute({
    act: adding,
    path: "/admin/users",
    deps: ({ db, clock }) => ({ db, clock, passwordHash: async () => null }),
    back: () => "/admin/users",
    done: ({ id, email, token }) => ({
      to: userPath(id),
      notice: token === null ? `${email} is added.` : linkNotice(url, email, token),
    }),
  }),
  {
    method: "GET",
    path: "/admin/users/:id",
    access: "account:read",
    async answer({ db, clock, timeZone }, { visitor, params }) {
      // The audit knows accounts by their addresses.
      const { id = "" } = params;
      const named = id.includes("@") ? await findAccount(db, id) : null;
      const account = named ?? (await accountOf(db, params));
      const sessions = await listSessions(db, account.id, clock.now());
      return {
        kind: "page",
        title: account.email,
        body: renderUser({ account, sessions, visitor, timeZone }),
        command: tallyhook(`users show ${account.email}`),
      };
    },
  },
  actRoute({
    act: changingRoles,
    path: "/admin/users/:account/roles",
    deps: ({ db }) => ({ db }),
    back: ({ account }) => userPath(account),
    now: seen,
    done: ({ id, email }, { role }) => ({
      to: userPath(id),
      notice: `${email} has ${role.length === 0 ? "no role" : role.join(", ")} now.`,
    }),
  }),
  actRoute({
    act: disabling,
    path: "/admin/users/:account/disable",
    deps: ({ db, clock }) => ({ db, clock }),
    back: ({ account }) => userPath(account),
    now: seen,
    done: ({ id, email }) => ({
      to: userPath(id),
      notice: `${email} cannot sign in any more, and is signed out everywhere.`,
    }),
  }),
  actRoute({
    act: enabling,
    path: "/admin/users/:account/enable",
    deps: ({ db, clock }) => ({ db, clock }),
    back: ({ account }) => userPath(account),
    now: seen,
    done: ({ id, email }) => ({ to: userPath(id), notice: `${email} can sign in again.` }),
  }),
  actRoute({
    act: linking,
    path: "/admin/users/:account/link",
    deps: ({ db, clock }) => ({ db, clock }),
    back: ({ account }) => userPath(account),
    now: seen,
    done: ({ id, email, token }) => ({ to: userPath(id), notice: linkNotice(url, email, token) }),
  }),
  actRoute({
    act: endingSessions,
    path: "/admin/users/:account/end-sessions",
    // One's own session stays: signing out ends it.
    deps: ({ db }, { visitor }) => ({ db, ownSession: visitor.session.id }),
    back: ({ account }) => userPath(account),
    now: seen,
    done: ({ id, email, ended }) => ({
      to: userPath(id),
      notice: `${counted(ended, "session")} of ${email} ended.`,
    }),
  }),
  {
    method: "GET",
    path: "/admin/sessions",
    access: "account:read",
    async answer({ db, clock, timeZone }, { visitor }) {
      const sessions = await listAllSessions(db, clock.now(), { limit: mostSessions });
      return {
        kind: "page",
        title: "Sessions",
        body: renderSessions({ sessions, mostSessions, visitor, timeZone }),
        command: tallyhook("users list"),
      };
    },
  },
  actRoute({
    act: endingSession,
    path: "/admin/sessions/:session/end",
    deps: ({ db }) => ({ db }),
    back: () => "/admin/sessions",
    done: ({ email }) => ({ to: "/admin/sessions", notice: `A session of ${email} ended.` }),
  }),
];

const userPath = (id: string | number): string => `/admin/users/${id}`;

const seen = (now: unknown): Html => {
  const { roles, disabledAt } = now as Account;
  return html`<p>It has the roles ${roles.join(", ") || "none"} now${disabledAt !== null && ", and is disabled"}.</p>`;
};

async function accountOf(db: Knex, { id = "" }: PageRequest["params"]): Promise<Account> {
  const account = /^\d{1,15}$/.test(id) ? await findAccountById(db, Number(id)) : null;
  if (account === null) throw new PageError(404, "There is no user with this number.");
  return account;
}

/** Shown once, as every notice is: the link signs its holder in as this person. */
const linkNotice = (url: string, email: string, token: string): string =>
  `Give this link to ${email}: it signs in once, within ten minutes, and is not shown again. ` +
  `${url}/sign-in/link?token=${token}`;
