import type { Knex } from "knex";
import { ActRefused } from "../../../people/act.ts";
import { findAccountById } from "../../../people/accounts.ts";
import { recordAct } from "../../../people/audit.ts";
import { type Permission, permissionsOf } from "../../../people/permissions.ts";
import { TallyhookError, UsageError } from "../../../platform/errors.ts";
import { longLine } from "../../../platform/free-text.ts";
import { type Html, html } from "../../../platform/html.ts";
import { dayIn } from "../../../platform/local-time.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { printableMessage } from "../../../platform/readable-text.ts";
import { defaultAccounts } from "../../../reports/base/account-map.ts";
import { isMonth } from "../../../reports/base/period.ts";
import { ChangedSinceShown } from "../../../reports/close/close-month.ts";
import { closing, preparing, withdrawing } from "../../../reports/close/acts.ts";
import { writeBundle } from "../../../reports/close/frozen.ts";
import { type MonthState, nextMonth, readMonthState } from "../../../reports/close/month-state.ts";
import { type Preparation, findPreparation, whyNotApprove } from "../../../reports/close/prepare-month.ts";
import { readCloses, verifyCloses } from "../../../reports/close/verify.ts";
import { actRoute, pageErrorOf } from "../../act-route.ts";
import { versionOf } from "../../parts/decided-on.ts";
import { optionalText } from "../../parts/form-text.ts";
import type { Tone } from "../../parts/state.ts";
import { type PageAnswer, type PageDeps, PageError, type PageRequest, type Route } from "../../route.ts";
import { monthAddress, monthName, renderClosedMonths, renderVerified } from "./close-view.ts";
import { renderApprove, renderMonth } from "./month-view.ts";
import type { ReportDesk } from "./report-desk.ts";
import { writeWhole } from "./report-file.ts";
import { accountsOf } from "./report-options.ts";
import { busyPage, reportFailure } from "./report-routes.ts";

export const closeRoutes = (desk: ReportDesk): readonly Route[] => [
  {
    method: "GET",
    path: "/reports/close",
    access: "report:read",
    async answer({ db, timeZone, clock }, { query }) {
      const wanted = query.get("month")?.trim() ?? "";
      if (isMonth(wanted)) return { kind: "redirect", to: monthAddress(wanted) };
      const closes = await readCloses(db);
      const month = await nextMonth(db, dayIn(timeZone, clock.now()));
      const next = { month, ...headlineOf(await readMonthState(db, month, timeZone)) };
      const body = renderClosedMonths({ next, closes, isFirst: closes.length === 0, timeZone });
      return {
        kind: "page",
        title: "Close a month",
        body,
        command: `node src/bin/tallyhook.js close ${month} --dry-run`,
      };
    },
  },
  {
    method: "GET",
    path: "/reports/close/verify",
    access: "report:read",
    async answer({ timeZone, clock }) {
      try {
        const verified = await desk.turns.take("Verification of every seal", async () =>
          verifyCloses(await desk.readingDb()),
        );
        if ("busy" in verified) return busyPage(verified.busy, "/reports/close/verify", { clock });
        const body = renderVerified(verified.done, timeZone);
        return {
          kind: "page",
          title: "Seals",
          body,
          command: "node src/bin/tallyhook.js close verify",
        };
      } catch (error) {
        throw reportFailure(error);
      }
    },
  },
  {
    method: "GET",
    path: "/reports/close/:month",
    access: "report:read",
    async answer(deps, request) {
      const month = monthOf(request);
      const state = await readMonthState(deps.db, month, deps.timeZone);
      const { permissions } = request.visitor;
      const running = desk.work.running();
      const failure = desk.work.failure(month);
      const body = renderMonth({
        state,
        work: running,
        failure: failure === null ? null : { ...failure, says: inWords(failure.error) },
        mayPrepare: permissions.has("month:prepare"),
        whyNotClose: state.preparation === null ? null : whyNotClose(desk, deps, request, state.preparation),
        fourEyes: desk.fourEyes,
        now: deps.clock.now(),
        timeZone: deps.timeZone,
      });
      const command =
        state.close === null
          ? `node src/bin/tallyhook.js close ${month} --dry-run`
          : `node src/bin/tallyhook.js close export ${month} --out ${month}.close`;
      return { kind: "page", title: monthName(month), body, command };
    },
  },
  {
    method: "GET",
    path: "/reports/close/:month/bundle",
    // The bundle holds the reports with personal data as well.
    access: "month:read",
    async answer(deps, request) {
      const month = monthOf(request);
      await inTransaction(deps.db, (trx) =>
        recordAct(trx, request.actor, {
          action: "month.exported",
          subject: { kind: "month", id: month },
        }),
      );
      try {
        const made = await desk.turns.take(`The bundle of ${month}`, async () => {
          const db = await desk.readingDb();
          return writeWhole((write) => writeBundle(db, month, write));
        });
        if ("busy" in made) return busyPage(made.busy, monthAddress(month), deps);
        return { kind: "file", name: `${month}.close`, type: "text/plain", body: made.done };
      } catch (error) {
        if (error instanceof UsageError) throw new PageError(404, error.message);
        throw reportFailure(error);
      }
    },
  },
  {
    method: "POST",
    path: "/reports/close/:month/prepare",
    access: preparing.permission,
    async answer(deps, request) {
      const month = monthOf(request);
      const { form, actor } = request;
      const input = { month, reason: optionalText(form, "reason", longLine) };
      const accounts = accountsOrPage(form);
      const outcome = await attempt(desk, { doing: "preparing", month, by: actor.name }, async (tell) => {
        const { region } = desk;
        const db = await desk.closingDb();
        const check = stillAllowed(request, preparing.permission);
        await preparing.run(
          { db, timeZone: deps.timeZone, region, accounts, tell, check },
          { actor, input, decidedOn: versionOf(form) },
        );
      });
      const notice =
        outcome === "done"
          ? `${monthName(month)} is prepared. ${desk.fourEyes ? "Somebody else has to close it." : ""}`.trim()
          : undefined;
      return back(month, notice);
    },
  },
  actRoute({
    act: withdrawing,
    path: "/reports/close/:month/withdraw",
    deps: ({ db }) => ({ db }),
    back: ({ month }) => monthAddress(month),
    done: (_, { month }) => ({
      to: monthAddress(month),
      notice: `The preparation of ${monthName(month)} is withdrawn.`,
    }),
  }),
  {
    method: "GET",
    path: "/reports/close/:month/approve",
    access: "report:read",
    async answer(deps, request) {
      const month = monthOf(request);
      const preparation = await findPreparation(deps.db, month);
      if (preparation === null) {
        throw new PageError(404, `Nobody has prepared ${monthName(month)}, or it is closed already.`);
      }
      const refusal = whyNotClose(desk, deps, request, preparation);
      if (refusal !== null) throw new PageError(403, refusal);
      return {
        kind: "page",
        title: `Close ${monthName(month)}`,
        body: renderApprove(preparation),
      };
    },
  },
  {
    method: "POST",
    path: "/reports/close/:month/approve",
    access: closing.permission,
    async answer(deps, request) {
      const month = monthOf(request);
      const { actor, form } = request;
      const { region, fourEyes } = desk;
      const call = { actor, input: { month }, decidedOn: versionOf(form) };
      if (form.get("compared") !== "yes") {
        throw new PageError(400, "Compare the SHA-256 of the reports first, and say so in the form.");
      }
      const outcome = await attempt(desk, { doing: "closing", month, by: actor.name }, async (tell) => {
        const db = await desk.closingDb();
        const check = stillAllowed(request, closing.permission);
        await closing.run({ db, timeZone: deps.timeZone, region, fourEyes, tell, check }, call);
      });
      const notice = outcome === "done" ? `${monthName(month)} is closed. Sign its seal.` : undefined;
      return back(month, notice);
    },
  },
];

/** Throws `PageError` for what is no month. */
function monthOf({ params }: PageRequest): string {
  const month = params["month"] ?? "";
  if (isMonth(month)) return month;
  throw new PageError(404, "This is no month that can be closed. Use one such as 2026-10.");
}

const back = (month: string, notice?: string): PageAnswer => ({
  kind: "redirect",
  to: monthAddress(month),
  ...(notice === undefined ? {} : { notice }),
});

/** Null where this visitor may close what is prepared. */
function whyNotClose(
  { region, fourEyes }: ReportDesk,
  { timeZone }: PageDeps,
  { actor, visitor }: PageRequest,
  preparation: Preparation,
): string | null {
  if (!visitor.permissions.has("month:close")) {
    return "Your roles do not allow you to close a month: it takes the permission month:close.";
  }
  return whyNotApprove({ preparation, by: actor, timeZone, region, fourEyes });
}

/** A close takes minutes, in which somebody may have been disabled or lost a role. */
const stillAllowed =
  ({ actor }: PageRequest, permission: Permission) =>
  async (trx: Knex.Transaction): Promise<void> => {
    const account = actor.accountId === null ? null : await findAccountById(trx, actor.accountId);
    if (account !== null && account.disabledAt === null) {
      if (permissionsOf(account.roles).has(permission)) return;
    }
    throw new UsageError("Your account may not do this any more, so nothing was done.");
  };

/** Works with patience for a moment. What is refused within it is a page that says why. */
async function attempt(
  { work }: ReportDesk,
  what: Parameters<ReportDesk["work"]["begin"]>[0],
  run: Parameters<ReportDesk["work"]["begin"]>[1],
): Promise<"done" | "goes on"> {
  try {
    const outcome = await work.begin(what, run);
    if (outcome !== "busy") return outcome;
  } catch (error) {
    if (error instanceof ActRefused) throw pageErrorOf(error);
    if (error instanceof TallyhookError) {
      throw new PageError(409, "Nothing was done.", { cause: error, details: inWords(error) });
    }
    throw reportFailure(error);
  }
  const other = work.running();
  throw new PageError(
    409,
    other === null
      ? "Other work on a month has just ended. Look at it again."
      : `${other.by} is ${other.doing} ${monthName(other.month)} just now, and one month is worked on at a time. Try again then.`,
  );
}

/** Pure. */
function inWords(error: unknown): Html {
  if (error instanceof ChangedSinceShown) {
    return html`<p>What counts has changed since it was prepared:</p>
      <ul>
        ${error.changes.map((change) => html`<li>${printableMessage(change)}</li>`)}
      </ul>
      <p>Prepare it again, and look at what changed.</p>`;
  }
  if (error instanceof TallyhookError) {
    // The command's way to close what is not proved is a field here.
    const lines = error.message.split("\n").filter((line) => !line.startsWith("--force"));
    return html`<ul>
      ${lines.map((line) => html`<li>${printableMessage(line)}</li>`)}
    </ul>`;
  }
  return html`<p>The log of the dashboard says why. Nothing was changed.</p>`;
}

function accountsOrPage(form: URLSearchParams) {
  try {
    return accountsOf(form) ?? defaultAccounts;
  } catch (error) {
    if (error instanceof UsageError) throw new PageError(400, printableMessage(error.message));
    throw error;
  }
}

/** Where a month stands, in few words. Pure. */
export function headlineOf({ close, preparation, checks }: MonthState): {
  headline: string;
  tone: Tone;
} {
  if (close !== null) return { headline: "closed", tone: "good" };
  if (preparation !== null) return { headline: "prepared, not closed", tone: "warn" };
  const open = checks.filter(({ isMet }) => isMet === false);
  if (open.some(({ check }) => check === "over")) return { headline: "not over yet", tone: "calm" };
  if (open.length > 0) return { headline: "cannot be closed yet", tone: "warn" };
  return { headline: "can be prepared", tone: "warn" };
}
