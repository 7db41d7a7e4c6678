import type { AlertAction, AlertMessage } from "../message.ts";

export const wordsOfAction: Readonly<Record<AlertAction, string>> = {
  trigger: "alert",
  acknowledge: "acknowledged",
  resolve: "resolved",
};

/** The first line of a message: how urgent it is, or that it is over, and its title. Not escaped. */
export function headlineOf({ action, severity, title }: AlertMessage): string {
  const head = action === "trigger" ? severity.toUpperCase() : wordsOfAction[action].toUpperCase();
  return `[${head}] ${title}`;
}
