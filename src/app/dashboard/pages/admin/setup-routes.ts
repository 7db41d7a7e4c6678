import { tallyhook } from "../../../../platform/command-line.ts";
import type { Route } from "../../route.ts";
import { type Examination, type Finding, type ShownSetting, renderDoctor, renderSettings } from "./setup-views.ts";

/** After this the browser gets an answer that the checks are still running. */
const longestWaitMs = 20_000;

export function setupRoutes({
  settings,
  examine,
}: {
  settings: readonly ShownSetting[];
  examine(): Promise<readonly Finding[]>;
}): readonly Route[] {
  let last: Examination | null = null;
  let running: Promise<void> | null = null;

  /** Requests during the checks share one run. */
  const examineOnce = (now: () => Date): Promise<void> => {
    running ??= examine()
      .then((findings) => void (last = { at: now(), findings }))
      .finally(() => (running = null));
    return running;
  };

  return [
    {
      method: "GET",
      path: "/admin/settings",
      access: "setting:read",
      answer: async (_, { visitor }) => ({
        kind: "page",
        title: "Settings",
        body: renderSettings({ settings, visitor }),
      }),
    },
    {
      method: "GET",
      path: "/admin/doctor",
      access: "setting:read",
      answer: async ({ timeZone }, { visitor }) => ({
        kind: "page",
        title: "Doctor",
        body: renderDoctor({ last, isRunning: running !== null, visitor, timeZone }),
        command: tallyhook("doctor"),
      }),
    },
    {
      method: "POST",
      path: "/admin/doctor",
      access: "setting:read",
      async answer({ clock }) {
        await Promise.race([examineOnce(() => clock.now()), timeLimit(longestWaitMs)]);
        return { kind: "redirect", to: "/admin/doctor" };
      },
    },
  ];
}

const timeLimit = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms).unref());
