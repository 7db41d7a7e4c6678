import { basename } from "node:path";
import { tallyhook } from "../../../platform/command-line.ts";
import type { HandlerHealth, DownHost } from "../../../app/answers.ts";
import { type HandlerRow, mostCounted } from "../dispatch/manage-handlers.ts";
import { type Html, html } from "../../../platform/html.ts";
import { durationText, someOf } from "../../../platform/readable-text.ts";
import { outside, time, ago } from "../../../app/dashboard/elements/values.ts";
import { table } from "../../../app/dashboard/elements/table.ts";
import { type RecipientWords, countText, recipientPath, recipientState } from "./recipient-words.ts";

export interface ListedRecipient {
  row: HandlerRow;
  words: RecipientWords;
  health: HandlerHealth | null;
}

export interface HandlersPage {
  recipients: readonly ListedRecipient[];
  /** Handlers that no process runs, or that end theirs. */
  down: readonly DownHost[];
  /** Whether the visitor may read people's reasons. */
  readsTexts: boolean;
  now: Date;
  timeZone: string;
}

export function renderHandlers({ recipients, down, readsTexts, now, timeZone }: HandlersPage): Html {
  const list = table<ListedRecipient>(
    [
      {
        name: "Name",
        cell: ({ row, words }) =>
          html`<a href="${recipientPath(row.name)}">${outside(words.name, 80)}</a>
            <span class="hint">${words.noun}</span>`,
      },
      { name: "State", cell: ({ row }) => recipientState(row, { readsTexts }) },
      { name: "Dead", kind: "number", cell: ({ row }) => countText(row.dead, mostCounted) },
      { name: "Waiting", kind: "number", cell: ({ row }) => countText(row.waiting, mostCounted) },
      { name: "Not read yet", cell: ({ row, health }) => behindText(row, health, now) },
      { name: "Done", kind: "number", cell: ({ row }) => row.done },
      { name: "Failed attempts", kind: "number", cell: ({ row }) => row.failed },
      {
        name: "Last done",
        cell: ({ row: { last_done_at: at } }) => (at === null ? "never" : ago(at, timeZone)),
      },
    ],
    recipients,
    { caption: "Handlers and destinations that ever ran here", empty: noneYet },
  );
  return html`${down.map((host) => downLine(host, timeZone))} ${list}`;
}

const downLine = ({ files, isApart, downSince, reason }: DownHost, timeZone: string): Html =>
  html`<p class="problem">
    ${outside(someOf(files.map((file) => basename(file))))}: not usable, or the process ends again and again, since
    ${time(downSince, timeZone)}. ${isApart && "The other handlers run."}
    <span class="hint">${outside(reason)}</span>
  </p>`;

/** The distance to the newest row. */
export function behindText(
  { behind }: Pick<HandlerRow, "behind">,
  health: Pick<HandlerHealth, "unreadSince"> | null,
  now: Date,
): string {
  const since = health?.unreadSince ?? null;
  if (since === null || behind === 0) return "nothing";
  return `up to ${behind}, the oldest for ${durationText(now.getTime() - since.getTime())}`;
}

const noneYet = html`No handler and no destination has run on this database yet. docs/handlers.md says how your own code
  runs on changes, docs/forwarding.md how other programs get them: <code>${tallyhook("handlers list")}</code>`;
