import { basename } from "node:path";
import type { Answers, DownHost } from "../../../app/answers.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { counted, linesWithoutControls, withoutControls } from "../../../platform/readable-text.ts";
import type { AlertFact } from "../message.ts";
import { count } from "../setting-schemas.ts";
import { watch } from "../watch.ts";
import { type Wording, headlineText, shortened } from "./wording.ts";

/** The process that all handlers share does not run, or ends again and again. */
export const handlerHostDown = watch({
  rule: "handler_host_down",
  about: 'The process that all your handlers share has not run for "afterMinutes" minutes, or ends again and again.',
  severity: "critical",
  settings: { afterMinutes: count(0, 1_440, 1) },
  read: async (db, { settings }, { downHosts }: Pick<Answers, "downHosts">) =>
    (await downHosts?.(db, settings)) ?? null,
  begins(hosts, { localTime, shortTime }) {
    const shared = hosts.filter(({ isApart }) => !isApart);
    const [longest] = shared;
    if (longest === undefined) return null;
    const files = [...new Set(shared.flatMap((host) => host.files))].toSorted();
    return {
      key: "handler-host:shared",
      title: headlineText({
        lead: `The process of ${counted(files.length, "handler")} does not run, or ends again and again`,
        next: `Since ${shortTime(longest.downSince)}`,
      }),
      advice:
        "Events are still applied, and nothing is lost: changes wait in their order. It is started again by " +
        'itself. "Why" has the cause of its last end, and the log of the worker has each ("the process of the ' +
        'handlers has ended"). Fix the file that it names, or give the machine more memory or CPU, and restart the ' +
        "worker. This alert ends by itself: once the process runs, or, where it ended after its start, has run for " +
        "ten minutes.",
      facts: [...factsOf(longest, localTime), { label: "Files", value: listText(files) }],
      storedFacts: { files: files.length, downSince: longest.downSince.toISOString() },
    };
  },
  end: {
    title: "The process of the handlers runs again",
    advice:
      "It runs, or no worker starts it any longer. The waiting changes run in their order. Nothing is left to do.",
  },
  samples: ({ at }) => ({
    "the process of the handlers down": [
      {
        files: ["handlers/send-refund-receipt.ts", "handlers/tell-the-shop.ts"],
        isApart: false,
        downSince: new Date(at.getTime() - 5 * 60_000),
        reason: "it said nothing for 30 s after its start",
        supervisors: 2,
      },
    ],
  }),
});

const filePrefix = "handler-quarantined:";

/** Each file that the others run without. */
export const handlerQuarantined = watch({
  rule: "handler_quarantined",
  about:
    'The file of a handler has not been usable for "afterMinutes" minutes, or ends its process: the others run without it.',
  severity: "error",
  settings: { afterMinutes: count(0, 1_440, 1) },
  read: async (db, { settings }, { downHosts }: Pick<Answers, "downHosts">) =>
    (await downHosts?.(db, settings)) ?? null,
  begins: (hosts, { localTime, shortTime }) =>
    hosts
      .filter(({ isApart }) => isApart)
      .flatMap((host) =>
        host.files.map((file) => ({
          key: `${filePrefix}${file}`,
          title: headlineText({
            lead: `The handler in ${shortened(basename(file))} is not usable, or ends its process`,
            next: `Since ${shortTime(host.downSince)}`,
          }),
          advice:
            "It runs in a process of its own, which is started again by itself. The other handlers run. Nothing is " +
            "lost: its changes wait in their order, but one that ran when its process ended has lost an attempt. " +
            '"Why" has the cause. Fix the file and restart the worker; until then ' +
            `"${tallyhook("handlers pause NAME")}" keeps it from being tried. This alert ends by itself once the ` +
            "file is usable, or its process has run for ten minutes.",
          facts: [{ label: "File", value: withoutControls(file) }, ...factsOf(host, localTime)],
          storedFacts: { file, downSince: host.downSince.toISOString() },
        })),
      ),
  end: (key) => ({
    title: headlineText({ lead: `The handler in ${shortened(basename(key.slice(filePrefix.length)))} runs again` }),
    advice:
      "It runs, or no worker starts it any longer. The waiting changes run in their order. Nothing is left to do.",
  }),
  samples: ({ at }) => ({
    "a handler in quarantine": [
      {
        files: ["handlers/tell-the-shop.ts"],
        isApart: true,
        downSince: new Date(at.getTime() - 5 * 60_000),
        reason: "it exited with code 3, as by process.exit() in a handler",
        supervisors: 1,
      },
    ],
  }),
});

const factsOf = ({ reason, downSince, supervisors }: DownHost, localTime: Wording["localTime"]): AlertFact[] => [
  { label: "Why", value: linesWithoutControls(reason) },
  { label: "Since", value: localTime(downSince) },
  { label: "Workers that report it", value: String(supervisors) },
];

const mostListed = 10;

const listText = (files: readonly string[]): string =>
  [
    ...files.slice(0, mostListed).map((file) => withoutControls(file)),
    ...(files.length > mostListed ? [`and ${files.length - mostListed} more`] : []),
  ].join(", ");
