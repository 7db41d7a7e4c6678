import { readEmail, findAccountById } from "../../../people/accounts.ts";
import { recordAct } from "../../../people/audit.ts";
import { TooManySignIns } from "../../../people/password.ts";
import { beginSession, endSessionOf } from "../../../people/sessions.ts";
import { useSignInLink } from "../../../people/sign-in-links.ts";
import type { PasswordSignIn } from "../../../people/sign-in.ts";
import { UsageError } from "../../../platform/errors.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { durationText } from "../../../platform/readable-text.ts";
import { type PageAnswer, PageError, type Route } from "../../route.ts";
import { renderSignIn } from "./view.ts";

/** How people sign in and out. */
export function signInRoutes({ signIn }: PasswordSignIn): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/sign-in",
      access: "anyone",
      answer: async (_, { visitor, query }) =>
        visitor === null
          ? page({ next: ownPath(query.get("next")), email: "", problem: null })
          : { kind: "redirect", to: ownPath(query.get("next")) },
    },
    {
      method: "POST",
      path: "/sign-in",
      access: "anyone",
      async answer(_, { form, actor, userAgent }) {
        const next = ownPath(form.get("next"));
        const email = form.get("email") ?? "";
        const refuse = (problem: string, status: number) =>
          page({ next, email: email.slice(0, 254), problem }, status);
        try {
          const result = await signIn({
            email: readEmail(email),
            password: form.get("password") ?? "",
            code: form.get("code") ?? "",
            address: actor.address ?? "",
            userAgent,
          });
          if (result.ok) return { kind: "redirect", to: next, token: result.token };
          if (result.reason === "wrong") {
            return refuse("E-mail address, password or code is wrong.", 401);
          }
          const wait = durationText(Math.max(60_000, result.retryAfterSeconds * 1_000));
          return refuse(`Too many attempts failed. Try again in ${wait}.`, 429);
        } catch (error) {
          if (error instanceof UsageError) return refuse(error.message, 400);
          if (error instanceof TooManySignIns) return refuse(error.message, 503);
          throw error;
        }
      },
    },
    {
      method: "GET",
      path: "/sign-in/link",
      access: "anyone",
      async answer({ db, clock }, { query, actor, userAgent }) {
        const now = clock.now();
        const token = await inTransaction(db, async (trx) => {
          const accountId = await useSignInLink(trx, query.get("token") ?? "", now);
          const account = accountId === null ? null : await findAccountById(trx, accountId);
          if (account === null || account.disabledAt !== null) return null;
          const who = { ...actor, accountId: account.id, name: account.email };
          await recordAct(trx, who, { action: "sign-in.done" });
          const address = actor.address ?? "";
          return beginSession(trx, {
            accountId: account.id,
            method: "link",
            address,
            userAgent,
            now,
          });
        });
        if (token !== null) return { kind: "redirect", to: "/", token };
        throw new PageError(
          403,
          "This link was used already or is older than ten minutes. Make another one: npx tallyhook users link EMAIL",
        );
      },
    },
    {
      method: "POST",
      path: "/sign-out",
      access: "signed-in",
      async answer({ db }, { visitor: { session }, actor }) {
        await inTransaction(db, async (trx) => {
          await endSessionOf(trx, session.accountId, session.id);
          await recordAct(trx, actor, { action: "sign-out.done" });
        });
        return { kind: "redirect", to: "/sign-in", token: null, notice: "You are signed out." };
      },
    },
  ];
}

const page = (input: Parameters<typeof renderSignIn>[0], status = 200): PageAnswer => ({
  kind: "page",
  title: "Sign in",
  body: renderSignIn(input),
  status,
});

/** A path of the dashboard itself: whoever sends a link decides what follows a sign-in. Pure. */
export function ownPath(text: string | null): string {
  if (text === null || !/^\/(?![/\\])[\x21-\x7e]*$/.test(text) || text.includes("\\")) return "/";
  return text.startsWith("/sign-in") ? "/" : text;
}
