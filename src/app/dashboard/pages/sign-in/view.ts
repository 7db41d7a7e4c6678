import { tallyhook } from "../../../../platform/command-line.ts";
import { type Html, html } from "../../../../platform/html.ts";

export interface SignInForm {
  /** The page after sign-in. */
  next: string;
  /** Whether a form was sent after the session had ended. */
  isUnsaved: boolean;
  email: string;
  problem: string | null;
  /** Whether people may sign in with the company's account. */
  hasOidc: boolean;
}

/** Shown after a form was sent in an ended session. */
export const unsavedText =
  "The change was not made: your session had ended before the form was sent. Fill it in again.";

export function renderSignIn({ next, isUnsaved, email, problem, hasOidc }: SignInForm): Html {
  const way = new URLSearchParams({ next, ...(isUnsaved ? { unsaved: "yes" } : {}) });
  return html`${isUnsaved && html`<p class="notice">The change was not made: your session has ended. Sign in, and fill the form in again.</p>`}
    ${hasOidc && html`<p><a class="button" href="/sign-in/oidc?${way.toString()}">Sign in with your company's account</a></p>`}
    <form class="card narrow" method="post" action="/sign-in">
      ${problem !== null && html`<p class="problem" role="alert" id="problem">${problem}</p>`}
      <input type="hidden" name="next" value="${next}" />
      ${isUnsaved && html`<input type="hidden" name="unsaved" value="yes" />`}
      <label for="email">E-mail address</label>
      <input id="email" name="email" type="email" autocomplete="username" required value="${email}" />
      <label for="password">Password</label>
      <input id="password" name="password" type="password" autocomplete="current-password" required />
      <label for="code">Code of your app <span class="hint">if you use one</span></label>
      <input id="code" name="code" inputmode="numeric" autocomplete="one-time-code" maxlength="12" />
      <button>Sign in</button>
      <p class="hint">
        No account yet? A person with access to the server adds one:
        <code>${tallyhook("users add EMAIL")}</code>
      </p>
    </form>`;
}

/** Asks before a link is used up that was not opened from the address bar, or for the code. */
export function renderLink(token: string, { asksCode, problem }: { asksCode: boolean; problem: string | null }): Html {
  return html`<form class="card narrow" method="post" action="/sign-in/link">
    ${problem !== null && html`<p class="problem" role="alert">${problem}</p>`}
    <p>This link signs you in once. Use it only if you asked for it.</p>
    <input type="hidden" name="token" value="${token}" />
    ${
      asksCode &&
      html`<label for="code">Code of your app</label>
        <input id="code" name="code" inputmode="numeric" autocomplete="one-time-code" maxlength="12" required />`
    }
    <button>Sign in</button>
    ${
      asksCode &&
      html`<p class="hint">
        Lost the app? A person with access to the server removes the code from your account:
        <code>${tallyhook("users totp EMAIL --remove")}</code>
      </p>`
    }
  </form>`;
}
