import { tallyhook } from "../../../../platform/command-line.ts";
import { recordAct } from "../../../people/audit.ts";
import { revoke } from "../../../people/revoke.ts";
import { listSessions } from "../../../people/sessions.ts";
import { inTransaction } from "../../../../platform/postgres/transactions.ts";
import { counted } from "../../../../platform/readable-text.ts";
import type { PageGroup } from "../../page-group.ts";
import { PageError, type Route, themes } from "../../route.ts";
import { renderAccount } from "./view.ts";

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
