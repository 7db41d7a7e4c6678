import { tallyhook } from "../../../platform/command-line.ts";
import type { Opened } from "../../../app/cli/command.ts";
import { alertSettings } from "../run-alerts.ts";

export const alertDeps = ({ db, runtime }: Opened) => ({
  db,
  clock: runtime.wallClock,
  settings: () => alertSettings(runtime),
});

/** Shown for an unknown alert. */
export const listHint = { unknown: `"${tallyhook("alerts list --all")}" shows them.` };
