import type { AlertAction, AlertMessage } from "../message.ts";
import { oneLine } from "./plain-text.ts";

export const wordsOfAction: Readonly<Record<AlertAction, string>> = {
  trigger: "alert",
  acknowledge: "acknowledged",
  resolve: "resolved",
};

const maxTitle = 250;

/** The title as every channel shows it: one line of bounded length, whatever values of others stand in it. Not escaped. */
export const titleOf = ({ title }: Pick<AlertMessage, "title">): string => oneLine(title, maxTitle);

/** The first line of a message: how urgent it is, or that it is over, and its title. Not escaped. */
export function headlineOf(message: AlertMessage): string {
  const { action, severity } = message;
  const head = action === "trigger" ? severity.toUpperCase() : wordsOfAction[action].toUpperCase();
  return `[${head}] ${titleOf(message)}`;
}
