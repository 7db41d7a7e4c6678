import { z } from "zod";
import { tallyhook } from "../../../../platform/command-line.ts";
import { readEmail } from "../../../people/accounts.ts";
import { recordAct } from "../../../people/audit.ts";
import { TooManySignIns } from "../../../people/password.ts";
import { type OidcSignIn, ProviderUnreachable, callbackPath } from "../../../people/oidc.ts";
import { revoke } from "../../../people/revoke.ts";
import type { Browser } from "../../../people/sessions.ts";
import type { OwnSignIn } from "../../../people/sign-in.ts";
import { UsageError } from "../../../../platform/errors.ts";
import { inTransaction } from "../../../../platform/postgres/transactions.ts";
import { durationText } from "../../../../platform/readable-text.ts";
import type { PageGroup } from "../../page-group.ts";
import { type PageAnswer, PageError, type PageRequest, type Route, type Visitor, ownPath } from "../../route.ts";
import { type SignInForm, renderLink, renderSignIn, unsavedText } from "./view.ts";

export interface SignIns {
  own: OwnSignIn;
  /** Null where the company's sign-in is not set up. */
  oidc: OidcSignIn | null;
}

/** How people sign in and out. */
export const signInPages = (signIns: SignIns): PageGroup => ({
  place: null,
  routes: signInRoutes(signIns),
});

function signInRoutes({ own: { signIn, signInByLink }, oidc }: SignIns): readonly Route[] {
  const page = (form: Omit<SignInForm, "hasOidc">, status = 200): PageAnswer => ({
    kind: "page",
    title: "Sign in",
    body: renderSignIn({ ...form, hasOidc: oidc !== null }),
    status,
  });
  return [
    ...(oidc === null ? [] : oidcRoutes(oidc)),
    {
      method: "GET",
      path: "/sign-in",
      access: "anyone",
      answer: async (_, { visitor, query }) =>
        visitor === null
          ? page({ ...wayBack(query), email: "", problem: null })
          : { kind: "redirect", to: ownPath(query.get("next")) },
    },
    {
      method: "POST",
      path: "/sign-in",
      access: "anyone",
      async answer(_, request) {
        const { form } = request;
        const back = wayBack(form);
        const email = form.get("email") ?? "";
        const refuse = (problem: string, status: number) =>
          page({ ...back, email: email.slice(0, 254), problem }, status);
        try {
          const result = await signIn({
            email: readEmail(email),
            password: form.get("password") ?? "",
            code: form.get("code") ?? "",
            ...browserOf(request),
          });
          if (result.ok) return { ...leadBack(back), token: result.token };
          if (result.reason === "wrong") {
            return refuse("E-mail address, password or code is wrong.", 401);
          }
          return refuse(waitText(result.retryAfterSeconds), 429);
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
      // Any sender can link to an account of their own, and programs open links before people do: then a button asks.
      answer: async (_, request) => {
        const token = request.query.get("token");
        if (request.isChosen) return answerLink(signInByLink, request, { token, code: "" });
        const body = renderLink(token ?? "", { asksCode: false, problem: null });
        return { kind: "page", title: "Sign in", body };
      },
    },
    {
      method: "POST",
      path: "/sign-in/link",
      access: "anyone",
      answer: (_, request) => {
        const { form } = request;
        const given = { token: form.get("token"), code: form.get("code") ?? "" };
        return answerLink(signInByLink, request, given);
      },
    },
    {
      method: "POST",
      path: "/sign-out",
      access: "signed-in",
      async answer({ db }, { visitor: { session }, actor }) {
        await inTransaction(db, async (trx) => {
          await revoke(trx, session.accountId, "sign-out.done", session.id);
          await recordAct(trx, actor, { action: "sign-out.done" });
        });
        return { kind: "redirect", to: "/sign-in", token: null, notice: "You are signed out." };
      },
    },
  ];
}

/** Begins a session, or asks for the code that the account takes. Throws `PageError` where the link is over. */
async function answerLink(
  signInByLink: OwnSignIn["signInByLink"],
  request: PageRequest<Visitor | null>,
  given: { token: string | null; code: string },
): Promise<PageAnswer> {
  const token = given.token ?? "";
  const result = await signInByLink({ token, code: given.code, ...browserOf(request) });
  if (result.ok) return { kind: "redirect", to: "/", token: result.token };
  const ask = (problem: string | null, status: number): PageAnswer => ({
    kind: "page",
    title: "Sign in",
    body: renderLink(token, { asksCode: true, problem }),
    status,
  });
  switch (result.reason) {
    case "code needed":
      return ask(null, 200);
    case "wrong":
      return ask("The code is wrong, or was used before. Wait for the next one.", 401);
    case "throttled":
      return ask(waitText(result.retryAfterSeconds), 429);
    case "over":
      throw new PageError(
        403,
        "This link was used already, is older than ten minutes, or ended with a session of its account. Make " +
          `another one: ${tallyhook("users link EMAIL")}`,
      );
  }
}

const browserOf = ({ actor, userAgent, visitor }: PageRequest<Visitor | null>): Browser => ({
  address: actor.address ?? "",
  userAgent,
  replaces: visitor?.session ?? null,
});

const waitText = (seconds: number): string =>
  `Too many attempts failed. Try again in ${durationText(Math.max(60_000, seconds * 1_000))}.`;

type WayBack = Pick<SignInForm, "next" | "isUnsaved">;

/** The page to return to, from a form or an address. */
const wayBack = (given: URLSearchParams): WayBack => ({
  next: ownPath(given.get("next")),
  isUnsaved: given.get("unsaved") === "yes",
});

const leadBack = ({ next, isUnsaved }: WayBack) =>
  ({ kind: "redirect", to: next, ...(isUnsaved ? { notice: unsavedText } : {}) }) as const;

function oidcRoutes(oidc: OidcSignIn): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/sign-in/oidc",
      access: "anyone",
      async answer(_, { query }) {
        const { url, attempt } = await oidc.begin().catch(asPage);
        return {
          kind: "leave",
          url,
          keep: JSON.stringify({ ...attempt, ...wayBack(query) }),
        };
      },
    },
    {
      method: "GET",
      path: callbackPath,
      access: "anyone",
      async answer(_, request) {
        const { query, kept } = request;
        const attempt = keptAttempt.safeParse(readJson(kept));
        if (!attempt.success) {
          throw new PageError(400, "This sign-in took longer than ten minutes, or was started elsewhere. Start again.");
        }
        const url = new URL(`?${query.toString()}`, "http://localhost");
        const result = await oidc.complete(url, attempt.data, browserOf(request)).catch(asPage);
        if (!result.ok) throw new PageError(403, result.problem);
        const { next, isUnsaved } = attempt.data;
        const notice = result.keepsAdmin ? { notice: keepsAdminNotice } : {};
        return {
          ...leadBack({ next: ownPath(next), isUnsaved }),
          token: result.token,
          ...notice,
        };
      },
    },
  ];
}

const keepsAdminNotice =
  "None of your groups gives you the role admin any more. You keep it, because no other account has it: give it to " +
  "another person first.";

const keptAttempt = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  next: z.string(),
  isUnsaved: z.boolean(),
});

function readJson(text: string | null): unknown {
  try {
    return text === null ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

function asPage(error: unknown): never {
  if (error instanceof ProviderUnreachable) throw new PageError(502, error.message, { cause: error });
  throw error;
}
