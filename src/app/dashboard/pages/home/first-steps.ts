import type { Knex } from "knex";
import type { Answers } from "../../../answers.ts";
import { firstEventAt } from "../../../../core/inbox/queries.ts";
import { tallyhook } from "../../../../platform/command-line.ts";
import { type Html, html } from "../../../../platform/html.ts";
import { isMirrorEmpty } from "../../../../core/mirror/look-up.ts";
import { state } from "../../elements/values.ts";

/** The first steps that a new deployment has completed. */
export interface Beginning {
  hasWorker: boolean;
  hasEvents: boolean;
  hasObjects: boolean;
  hasRun: boolean;
}

/** Four statements, each of a row or two. */
export async function readBeginning(db: Knex, { beginning }: Pick<Answers, "beginning">): Promise<Beginning> {
  const [firstEvent, isEmpty, runs] = await Promise.all([firstEventAt(db), isMirrorEmpty(db), beginning?.(db)]);
  // Without reconciliation nothing is missing of it.
  const { hasWorker, hasRun } = runs ?? { hasWorker: true, hasRun: true };
  return { hasWorker, hasEvents: firstEvent !== null, hasObjects: !isEmpty, hasRun };
}

/** No event has arrived yet in any way, so there are no numbers to show. */
export const isNew = ({ hasEvents, hasObjects, hasRun }: Beginning): boolean => !hasEvents && !hasObjects && !hasRun;

/** Something of the beginning is still to be done. */
export const isBegun = ({ hasEvents, hasRun }: Beginning): boolean => hasEvents && hasRun;

export function renderFirstSteps(done: Beginning): Html {
  const steps: readonly {
    isDone: boolean;
    what: string;
    commands: readonly string[];
    hint: string;
  }[] = [
    {
      isDone: done.hasWorker,
      what: "Run a worker",
      commands: [tallyhook("worker")],
      hint:
        `It applies events, reconciles every night and sends alerts. “${tallyhook("start")}” runs everything in ` +
        "one process.",
    },
    {
      isDone: done.hasEvents,
      what: "Point the service's webhooks here",
      commands: [tallyhook("endpoint register --url https://your-host.example/webhooks")],
      hint: `At the sandbox “${tallyhook("start")}” has done it. Make events there: ${tallyhook("trigger order.paid")}`,
    },
    {
      isDone: done.hasRun,
      what: "Fill the mirror, and prove it",
      commands: [tallyhook("import")],
      hint: "Reads everything that the service has. It resumes where it was interrupted.",
    },
    {
      isDone: false,
      what: "Add your colleagues",
      commands: [tallyhook("users add ann@example.com --role support")],
      hint: "Roles say what they may see and do.",
    },
  ];
  return html`<section class="card">
    <h2>First steps</h2>
    <ol class="steps">
      ${steps.map(
        ({ isDone, what, commands, hint }) =>
          html`<li>
            <h3>${what} ${isDone && state("done", "good")}</h3>
            ${
              !isDone &&
              html`${commands.map((command) => html`<p><code>${command}</code></p>`)}
                <p class="hint">${hint}</p>`
            }
          </li>`,
      )}
    </ol>
  </section>`;
}
