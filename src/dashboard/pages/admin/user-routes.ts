import type { Knex } from "knex";
import {
  type Account,
  findAccount,
  findAccountById,
  listAccounts,
  readEmail,
} from "../../../people/accounts.ts";
import { recordAct } from "../../../people/audit.ts";
import { LastAdmin, lockAdmins } from "../../../people/last-admin.ts";
import {
  type AccountDecision,
  addAccount,
  decideAccount,
  disabling,
  enabling,
  makeSignInLink,
  newRoles,
} from "../../../people/manage-accounts.ts";
import { type Role, isRole, roleNames } from "../../../people/permissions.ts";
import { revoke } from "../../../people/revoke.ts";
import { listAllSessions, listSessions, ownerOfSession } from "../../../people/sessions.ts";
import { UsageError } from "../../../platform/errors.ts";
import { html } from "../../../platform/html.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { counted } from "../../../platform/readable-text.ts";
import { outdated, versionOf } from "../../parts/decided-on.ts";
import {
  type PageAnswer,
  type PageDeps,
  PageError,
  type PageRequest,
  type Route,
} from "../../route.ts";
import { renderSessions, renderUser, renderUsers } from "./user-views.ts";

/** More are not shown: who looks for one of them ends it at its user. */
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
        command: "node src/bin/tallyhook.js users list",
      };
    },
  },
  {
    method: "POST",
    path: "/admin/users",
    access: "account:write",
    async answer({ db, clock }, { form, actor }) {
      const roles = rolesOf(form);
      try {
        const email = readEmail(form.get("email") ?? "");
        const account = { email, roles, passwordHash: null };
        const { id, token } = await inTransaction(db, async (trx) => {
          const added = await addAccount(trx, actor, account);
          const isLinked = form.get("link") === "yes";
          return {
            id: added.id,
            token: isLinked ? await makeSignInLink(trx, actor, added, clock.now()) : null,
          };
        });
        const notice = token === null ? `${email} is added.` : linkNotice(url, email, token);
        return { kind: "redirect", to: `/admin/users/${id}`, notice };
      } catch (error) {
        if (error instanceof UsageError) throw new PageError(400, error.message, { cause: error });
        throw error;
      }
    },
  },
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
        command: `node src/bin/tallyhook.js users show ${account.email}`,
      };
    },
  },
  changing("roles", (account, { form }) => {
    const roles = rolesOf(form);
    return {
      ...newRoles(account, roles),
      notice: `${account.email} has ${roles.length === 0 ? "no role" : roles.join(", ")} now.`,
    };
  }),
  changing("disable", (account, { visitor }, { clock }) => {
    if (account.id === visitor.session.accountId) {
      throw new PageError(409, "You cannot disable your own account. Somebody else has to do it.");
    }
    return {
      ...disabling(clock.now()),
      notice: `${account.email} cannot sign in any more, and is signed out everywhere.`,
    };
  }),
  changing("enable", (account, _, { clock }) => ({
    ...enabling(clock.now()),
    notice: `${account.email} can sign in again.`,
  })),
  {
    method: "POST",
    path: "/admin/users/:id/link",
    access: "account:write",
    async answer({ db, clock }, { actor, params }) {
      const account = await accountOf(db, params);
      if (account.disabledAt !== null) {
        throw new PageError(409, `${account.email} is disabled. Enable the account first.`);
      }
      const token = await inTransaction(db, (trx) =>
        makeSignInLink(trx, actor, account, clock.now()),
      );
      return backTo(account, linkNotice(url, account.email, token));
    },
  },
  {
    method: "POST",
    path: "/admin/users/:id/end-sessions",
    access: "account:write",
    async answer({ db }, { actor, params, visitor }) {
      const account = await accountOf(db, params);
      const count = await inTransaction(db, async (trx) => {
        // One's own session stays: who wants to leave signs out.
        const ended = await revoke(trx, account.id, "other-sessions.ended", visitor.session.id);
        const subject = { kind: "account", id: account.email };
        await recordAct(trx, actor, { action: "session.ended", subject, after: { ended } });
        return ended;
      });
      return backTo(account, `${counted(count, "session")} of ${account.email} ended.`);
    },
  },
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
        command: "node src/bin/tallyhook.js users list",
      };
    },
  },
  {
    method: "POST",
    path: "/admin/sessions/:id/end",
    access: "account:write",
    async answer({ db }, { actor, params: { id = "" } }) {
      const email = await inTransaction(db, async (trx) => {
        const owner = await ownerOfSession(trx, id);
        const ended = owner === null ? 0 : await revoke(trx, owner.id, "session.ended", id);
        if (owner === null || ended === 0) return null;
        const subject = { kind: "account", id: owner.email };
        await recordAct(trx, actor, { action: "session.ended", subject, after: { ended } });
        return owner.email;
      });
      if (email === null) throw new PageError(404, "This session has ended already.");
      return { kind: "redirect", to: "/admin/sessions", notice: `A session of ${email} ended.` };
    },
  },
];

interface Decision extends AccountDecision {
  notice: string;
}

/** A change of an account as its sender saw it. */
function changing(
  name: string,
  decide: (account: Account, request: PageRequest, deps: PageDeps) => Decision,
): Route {
  return {
    method: "POST",
    path: `/admin/users/:id/${name}`,
    access: "account:write",
    answer: (deps, request) =>
      inTransaction(deps.db, async (trx) => {
        await lockAdmins(trx);
        const account = await accountOf(trx, request.params, "locked");
        if (versionOf(request.form) !== String(account.version)) {
          throw outdated(`The account ${account.email}`, seen(account));
        }
        const { notice, ...decision } = decide(account, request, deps);
        await decideAccount(trx, request.actor, account, decision).catch((error: unknown) => {
          throw error instanceof LastAdmin ? new PageError(409, error.message) : error;
        });
        return backTo(account, notice);
      }),
  };
}

const seen = ({ id, roles, disabledAt }: Account) =>
  html`<p>
    It has the roles ${roles.join(", ") || "none"} now${disabledAt !== null && ", and is disabled"}.
    <a href="/admin/users/${id}">Look at it again</a>
  </p>`;

async function accountOf(
  db: Knex,
  { id = "" }: PageRequest["params"],
  lock?: "locked",
): Promise<Account> {
  const account = /^\d{1,15}$/.test(id) ? await findAccountById(db, Number(id), lock) : null;
  if (account === null) throw new PageError(404, "There is no user of this number.");
  return account;
}

/** Throws `PageError` for a role that there is not: leaving it out would take roles away. Pure. */
function rolesOf(form: URLSearchParams): Role[] {
  const roles = form.getAll("role");
  if (roles.every(isRole)) return [...new Set(roles)];
  throw new PageError(
    400,
    `The form names a role that there is not; there are ${roleNames.join(", ")}. Nothing was changed.`,
  );
}

const backTo = ({ id }: Account, notice: string): PageAnswer => ({
  kind: "redirect",
  to: `/admin/users/${id}`,
  notice,
});

/** Shown once, as every notice is: whoever has the link signs in as this person. */
const linkNotice = (url: string, email: string, token: string): string =>
  `Give this link to ${email}: it signs in once, within ten minutes, and is not shown again. ${url}/sign-in/link?token=${token}`;
