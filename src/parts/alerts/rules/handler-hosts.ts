import { basename } from "node:path";
import type { Knex } from "knex";
import type { DownHost } from "../../delivery/dispatch/handler-hosts.ts";
import { counted, linesWithoutControls, withoutControls } from "../../../platform/readable-text.ts";
import { type AlertContext, wordingOf } from "../alert-context.ts";
import type { AlertFact } from "../message.ts";
import { clear, clearOthers, raise } from "../raise-conditions.ts";
import type { Condition, End } from "../timeline.ts";
import { type Wording, headlineText, shortened } from "./wording.ts";

/** Questions that the sweep asks the part that runs handlers. Absent where no part does. */
export interface HostQuestions {
  downHosts?(db: Knex, patience: { afterMinutes: number }): Promise<readonly DownHost[]>;
}

const sharedKey = "handler-host:shared";
const filePrefix = "handler-quarantined:";

/**
 * Reports that no process runs the handlers, and each file that runs apart from the others and fails there. In a
 * transaction; idempotent.
 */
export async function watchHandlerHosts(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  { downHosts }: HostQuestions,
): Promise<void> {
  if (downHosts === undefined) return;
  const at = alertContext.clock.now();
  const { handler_host_down: shared, handler_quarantined: apart } = alertContext.settings.rules;
  const context = { ...wordingOf(alertContext), at };
  const hostDown = hostDownCondition(await downHosts(trx, shared), context);
  const quarantined = quarantinedConditions(await downHosts(trx, apart), context);
  if (hostDown === null) {
    await clear(trx, alertContext, [{ key: sharedKey, end: hostDownEnd, at }], "sweep");
  }
  const keep = quarantined.map(({ key }) => key);
  const ended = { prefix: filePrefix, keep, at, end: quarantinedEnd };
  await clearOthers(trx, alertContext, ended, "sweep");
  await raise(trx, alertContext, [...(hostDown ?? []), ...quarantined], "sweep");
}

type Context = Wording & { at: Date };

/** The process that all handlers share does not run, or ends again and again; null where none is told of. */
export function hostDownCondition(
  hosts: readonly DownHost[],
  { rules, localTime, shortTime, at }: Context,
): [Condition] | null {
  const shared = hosts.filter(({ isApart }) => !isApart);
  const [longest] = shared;
  if (longest === undefined) return null;
  const files = [...new Set(shared.flatMap((host) => host.files))].toSorted();
  return [
    {
      key: sharedKey,
      rule: "handler_host_down",
      severity: rules.handler_host_down.severity,
      title: headlineText({
        lead: `The process of ${counted(files.length, "handler")} does not run, or ends again and again`,
        next: `Since ${shortTime(longest.downSince)}`,
      }),
      advice:
        "Events are applied meanwhile, and nothing is lost: changes wait in their order. It is started again by " +
        'itself. "Why" has the cause of its last end, and the log of the worker has each ("the ' +
        'process of the handlers has ended"). Mend the file that it names, or give the machine more memory or CPU, and ' +
        "restart the worker. This alert ends by itself: once the process runs, or, where it ended after its start, has " +
        "run for ten minutes.",
      facts: [...factsOf(longest, localTime), { label: "Files", value: listText(files) }],
      storedFacts: { files: files.length, downSince: longest.downSince.toISOString() },
      at,
    },
  ];
}

/** Each file that the others run without. */
export function quarantinedConditions(
  hosts: readonly DownHost[],
  { rules, localTime, shortTime, at }: Context,
): Condition[] {
  return hosts
    .filter(({ isApart }) => isApart)
    .flatMap((host) =>
      host.files.map((file) => ({
        key: `${filePrefix}${file}`,
        rule: "handler_quarantined",
        severity: rules.handler_quarantined.severity,
        title: headlineText({
          lead: `The handler in ${shortened(basename(file))} is not usable, or ends its process`,
          next: `Since ${shortTime(host.downSince)}`,
        }),
        advice:
          "It is kept in a process apart, which is started again by itself. The other handlers run. Nothing is lost: its " +
          'changes wait in their order, but one that ran when its process ended has lost an attempt. "Why" has the ' +
          'cause. Mend the file and restart the worker; until then "node src/bin/tallyhook.js handlers pause NAME" keeps ' +
          "it from being tried. This alert ends by itself once the file is usable, or its process has run for ten minutes.",
        facts: [{ label: "File", value: withoutControls(file) }, ...factsOf(host, localTime)],
        storedFacts: { file, downSince: host.downSince.toISOString() },
        at,
      })),
    );
}

const factsOf = ({ reason, downSince, supervisors }: DownHost, localTime: Wording["localTime"]): AlertFact[] => [
  { label: "Why", value: linesWithoutControls(reason) },
  { label: "Since", value: localTime(downSince) },
  { label: "Workers that say so", value: String(supervisors) },
];

const mostListed = 10;

const listText = (files: readonly string[]): string =>
  [
    ...files.slice(0, mostListed).map((file) => withoutControls(file)),
    ...(files.length > mostListed ? [`and ${files.length - mostListed} more`] : []),
  ].join(", ");

export const hostDownEnd: End = {
  title: "The process of the handlers runs again",
  advice: "It runs, or no worker starts it any more. What waited follows in its order. Nothing is left to do.",
};

export const quarantinedEnd = (file: string): End => ({
  title: headlineText({ lead: `The handler in ${shortened(basename(file))} runs again` }),
  advice: "It runs, or no worker starts it any more. What waited follows in its order. Nothing is left to do.",
});
