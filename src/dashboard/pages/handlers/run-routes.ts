import type { Knex } from "knex";
import {
  mostCounted,
  readRun,
  readHandlers,
  retryRuns,
  skipRun,
} from "../../../dispatch/manage-handlers.ts";
import { type OpenRunRow, findRun, lockRun, readDead } from "../../../dispatch/open-runs.ts";
import { recordAct } from "../../../people/audit.ts";
import { html } from "../../../platform/html.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { counted } from "../../../platform/readable-text.ts";
import { outdated, versionOf } from "../../parts/decided-on.ts";
import { PageError, type PageRequest, type Route } from "../../route.ts";
import { renderRetryAll, renderSkip, versionOfDead } from "./confirm-view.ts";
import { runState, versionOfRun } from "./handler-view.ts";
import { type RecipientWords, countText, recipientPath } from "./recipient-words.ts";

/** Retrying one run or all that is dead, and skipping one. `wordsOf` throws `PageError` for what there is no page of. */
export const runRoutes = (
  wordsOf: (request: Pick<PageRequest, "params">) => RecipientWords,
): readonly Route[] => [
  {
    method: "GET",
    path: "/handlers/:name/retry-dead",
    access: "status:read",
    async answer({ db }, request) {
      const words = wordsOf(request);
      const recipient = nameIn(request);
      const dead = await readDead(db, recipient, { most: mostCounted });
      const [row] = await readHandlers(db, recipient);
      return {
        kind: "page",
        title: `Retry all that is dead for ${words.name}`,
        body: renderRetryAll({
          recipient,
          words,
          dead,
          mostCounted,
          isPaused: row !== undefined && row.paused_by !== null,
          mayWrite: request.visitor.permissions.has("handler:write"),
        }),
        command: `${words.command} retry ${words.name} --all`,
      };
    },
  },
  {
    method: "POST",
    path: "/handlers/:name/retry-dead",
    access: "handler:write",
    async answer({ db }, request) {
      const words = wordsOf(request);
      const recipient = nameIn(request);
      return inTransaction(db, async (trx) => {
        const dead = await readDead(trx, recipient, { most: mostCounted });
        if (dead.count === 0 || versionOf(request.form) !== versionOfDead(dead)) {
          throw outdated(
            "What is dead",
            html`<p>Now ${counted(countText(dead.count, mostCounted), "is", "are")} dead.</p>
              <p><a href="${recipientPath(recipient)}/retry-dead">Look at it again</a></p>`,
          );
        }
        const again = await retryRuns(trx, recipient, { state: "dead" });
        await recordAct(trx, request.actor, {
          action: "handler.retried",
          subject: { kind: "handler", id: recipient },
          after: { runs: again },
        });
        const notice = `${counted(again, words.item, words.items)} will be tried again.`;
        return { kind: "redirect", to: recipientPath(recipient), notice };
      });
    },
  },
  {
    method: "POST",
    path: "/handlers/:name/runs/:seq/retry",
    access: "handler:write",
    async answer({ db }, request) {
      const words = wordsOf(request);
      const recipient = nameIn(request);
      return inTransaction(db, async (trx) => {
        const run = await requireDecided(trx, request);
        const again = await retryRuns(trx, recipient, { seq: run.seq });
        if (again === 0) throw await whyNot(trx, recipient, run.seq, words);
        await recordRun(trx, request, "handler.retried", run);
        const notice = `Number ${run.seq} will be tried again.`;
        return { kind: "redirect", to: recipientPath(recipient), notice };
      });
    },
  },
  {
    method: "GET",
    path: "/handlers/:name/runs/:seq/skip",
    access: "status:read",
    async answer({ db }, request) {
      const words = wordsOf(request);
      const recipient = nameIn(request);
      const run = await findRun(db, recipient, seqIn(request));
      if (run === null) throw noRun(request);
      return {
        kind: "page",
        title: `Skip number ${run.seq} for ${words.name}`,
        body: renderSkip({
          recipient,
          words,
          run,
          mayWrite: request.visitor.permissions.has("handler:write"),
        }),
        command: `${words.command} show ${words.name}`,
      };
    },
  },
  {
    method: "POST",
    path: "/handlers/:name/runs/:seq/skip",
    access: "handler:write",
    async answer({ db }, request) {
      const words = wordsOf(request);
      const recipient = nameIn(request);
      return inTransaction(db, async (trx) => {
        const run = await requireDecided(trx, request);
        if (!(await skipRun(trx, recipient, run.seq))) {
          throw await whyNot(trx, recipient, run.seq, words);
        }
        await recordRun(trx, request, "handler.skipped", run);
        const notice = `${words.name} never sees number ${run.seq}.`;
        return { kind: "redirect", to: recipientPath(recipient), notice };
      });
    },
  },
];

const nameIn = ({ params }: Pick<PageRequest, "params">): string => params["name"] ?? "";

const seqIn = ({ params }: Pick<PageRequest, "params">): number =>
  /^\d{1,15}$/.test(params["seq"] ?? "") ? Number(params["seq"]) : 0;

const noRun = ({ params }: Pick<PageRequest, "params">): PageError =>
  new PageError(
    404,
    `Nothing waits under the number ${(params["seq"] ?? "").slice(0, 40)}: it was done or skipped, or never wanted.`,
  );

/** The run, locked, where it is as the form's sender saw it. Throws `PageError`. */
async function requireDecided(
  trx: Knex.Transaction,
  request: Pick<PageRequest, "params" | "form">,
): Promise<OpenRunRow> {
  const run = await lockRun(trx, nameIn(request), seqIn(request));
  if (run === null) throw noRun(request);
  if (versionOf(request.form) === versionOfRun(run)) return run;
  throw outdated(
    `Number ${run.seq}`,
    html`<p>Now: ${runState(run)} after ${counted(run.attempts, "attempt")}</p>
      <p><a href="${recipientPath(nameIn(request))}">Look at it again</a></p>`,
  );
}

const recordRun = (
  trx: Knex.Transaction,
  request: Pick<PageRequest, "params" | "actor">,
  action: string,
  { seq, kind, resource, id, state, attempts }: OpenRunRow,
): Promise<void> =>
  recordAct(trx, request.actor, {
    action,
    subject: { kind: "handler", id: nameIn(request) },
    before: { seq, kind, resource, id, state, attempts },
  });

async function whyNot(
  db: Knex,
  recipient: string,
  seq: number,
  { item }: RecipientWords,
): Promise<PageError> {
  const run = await readRun(db, recipient, seq);
  const waitsFor = run?.waitsFor ?? null;
  return new PageError(
    409,
    waitsFor === null
      ? `Number ${seq} runs just now. Try again once that has ended.`
      : `This ${item} waits behind number ${waitsFor} of the same object. Retry or skip that one first.`,
  );
}
