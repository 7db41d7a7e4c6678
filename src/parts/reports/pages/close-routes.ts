import type { Knex } from "knex";
import { findAccountById } from "../../../app/people/accounts.ts";
import { type Act, ActRefused } from "../../../app/people/act.ts";
import { recordAct } from "../../../app/people/audit.ts";
import { type Permission, permissionsOf } from "../../../app/people/permissions.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { TallyhookError, UsageError } from "../../../platform/errors.ts";
import { type Html, html } from "../../../platform/html.ts";
import { dayIn } from "../../../platform/local-time.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { printableMessage } from "../../../platform/readable-text.ts";
import { defaultAccounts } from "../base/account-map.ts";
import { isMonth } from "../base/period.ts";
import { type CloseDeps, closing, preparing, withdrawing } from "../close/acts.ts";
import { ChangedSinceShown } from "../close/close-month.ts";
import { writeBundle } from "../close/frozen.ts";
import { CloseRefused, refusalLines } from "../close/hindrance.ts";
import { type MonthState, nextMonth, readMonthState } from "../close/month-state.ts";
import { type Preparation, findPreparation, whyNotApprove } from "../close/prepare-month.ts";
import { readCloses, verifyCloses } from "../close/verify.ts";
import { actRoute } from "../../../app/dashboard/act-route.ts";
import type { Tone } from "../../../app/dashboard/elements/values.ts";
import { type PageDeps, PageError, type PageRequest, type Route } from "../../../app/dashboard/route.ts";
import { monthAddress, monthName, renderClosedMonths, renderVerified } from "./close-view.ts";
import { renderApprove, renderMonth } from "./month-view.ts";
import type { Doing } from "./month-work.ts";
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
        command: tallyhook(`close ${month} --dry-run`),
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
          command: tallyhook("close verify"),
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
        whyNotClose: state.preparation === null ? null : whyNotClose(desk, request, state.preparation),
        fourEyes: desk.fourEyes,
        now: deps.clock.now(),
        timeZone: deps.timeZone,
      });
      const command =
        state.close === null
          ? tallyhook(`close ${month} --dry-run`)
          : tallyhook(`close export ${month} --out ${month}.close`);
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
  actRoute({
    act: withPatience(desk, preparing, "preparing"),
    path: "/reports/close/:month/prepare",
    async deps(deps, request) {
      const accounts = accountsOrPage(request.form);
      return { ...(await workDeps(desk, deps, request, "month:prepare")), accounts };
    },
    back: ({ month }) => monthAddress(month),
    done: (outcome, { month }) => ({
      to: monthAddress(month),
      ...(outcome === "done" && {
        notice: `${monthName(month)} is prepared.${desk.fourEyes ? " Another person has to close it." : ""}`,
      }),
    }),
  }),
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
        throw new PageError(404, `${monthName(month)} is not prepared, or is closed already.`);
      }
      const refusal = whyNotClose(desk, request, preparation);
      if (refusal !== null) throw new PageError(403, refusal);
      return {
        kind: "page",
        title: `Close ${monthName(month)}`,
        body: renderApprove(preparation),
      };
    },
  },
  actRoute({
    act: withPatience(desk, closing, "closing"),
    path: "/reports/close/:month/approve",
    async deps(deps, request) {
      if (request.form.get("compared") !== "yes") {
        throw new PageError(400, "Compare the SHA-256 of the reports first, and say so in the form.");
      }
      const { fourEyes } = desk;
      return { ...(await workDeps(desk, deps, request, "month:close")), fourEyes };
    },
    back: ({ month }) => monthAddress(month),
    done: (outcome, { month }) => ({
      to: monthAddress(month),
      ...(outcome === "done" && { notice: `${monthName(month)} is closed. Sign its seal.` }),
    }),
  }),
];

/** Throws `PageError` for an invalid month. */
function monthOf({ params }: PageRequest): string {
  const month = params["month"] ?? "";
  if (isMonth(month)) return month;
  throw new PageError(404, "This is no month that can be closed. Use one such as 2026-10.");
}

/** Null where this visitor may close the prepared month. */
function whyNotClose(
  { fourEyes }: ReportDesk,
  { visitor, actor: by }: PageRequest,
  preparation: Preparation,
): string | null {
  if (!visitor.permissions.has("month:close")) {
    return "Your roles do not allow you to close a month: that requires the permission month:close.";
  }
  return whyNotApprove({ preparation, by, fourEyes })?.message ?? null;
}

/** Dependencies of work on a month. It runs on a pool of its own. */
const workDeps = async (
  { region, closingDb }: ReportDesk,
  { timeZone }: PageDeps,
  request: PageRequest,
  permission: Permission,
): Promise<CloseDeps> => ({
  db: await closingDb(),
  timeZone,
  region,
  assertAllowed: (trx) => assertStillAllowed(trx, request, permission),
});

/** A close takes minutes, in which the person may be disabled or lose a role. */
async function assertStillAllowed(
  trx: Knex.Transaction,
  { actor }: PageRequest,
  permission: Permission,
): Promise<void> {
  const account = actor.accountId === null ? null : await findAccountById(trx, actor.accountId);
  if (account !== null && account.disabledAt === null) {
    if (permissionsOf(account.roles).has(permission)) return;
  }
  throw new UsageError("Your account may no longer do this, so nothing was done.");
}

/**
 * The same act in the background: the request waits for it a limited time. The work continues afterwards, and its page
 * reports the end. A refusal within that time becomes a page with the reason.
 */
function withPatience<Deps extends CloseDeps, Input extends { month: string }, Done>(
  { work }: ReportDesk,
  act: Act<Deps, Input, Done>,
  doing: Doing,
): Act<Deps, Input, "done" | "goes on"> {
  return {
    ...act,
    async run(deps, call) {
      const { month } = call.input;
      const outcome = await work
        .begin({ doing, month, by: call.actor.name }, async (tell) => {
          await act.run({ ...deps, tell }, call);
        })
        .catch((error: unknown) => {
          const hasMore = error instanceof CloseRefused || error instanceof ChangedSinceShown;
          if (error instanceof ActRefused && !hasMore) throw error;
          if (!(error instanceof TallyhookError)) throw reportFailure(error);
          throw new PageError(409, "Nothing was done.", { cause: error, details: inWords(error) });
        });
      if (outcome !== "busy") return outcome;
      const other = work.running();
      throw new PageError(
        409,
        other === null
          ? "Other work on a month has just ended. Look at it again."
          : `${other.by} is ${other.doing} ${monthName(other.month)} now, and one month is worked on at a time. ` +
              "Try again then.",
      );
    },
  };
}

function inWords(error: unknown): Html {
  if (error instanceof ChangedSinceShown) {
    return html`<p>The figures or their proof have changed since it was prepared:</p>
      <ul>
        ${error.changes.map((change) => html`<li>${printableMessage(change)}</li>`)}
      </ul>
      <p>Prepare it again, and look at what changed.</p>`;
  }
  if (error instanceof TallyhookError) {
    const lines = error instanceof CloseRefused ? refusalLines(error.why) : [error.message];
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

/** The state of a month, in few words. */
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
