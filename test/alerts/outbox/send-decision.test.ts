import { expect, test } from "vitest";
import { sendDecisionOf } from "../../../src/parts/alerts/outbox/sender.ts";

const fresh = {
  action: "trigger",
  alertState: "open",
  mayBeRepeat: false,
  isList: false,
  isEarlierTold: false,
  isLaterTold: false,
} as const;
const unheard = "this channel did not get the alert itself";
const over = "resolved before it was sent";
const overtaken = "a later transition was sent first";

test.each([
  ["a new alert", {}, null],
  ["a later stage", { isEarlierTold: true }, null],
  ["an acknowledged alert", { alertState: "acknowledged" }, null],
  ["a digest", { alertState: null }, null],
  ["a list of a storm that is over", { alertState: "resolved", isList: true }, null],
  ["what is over already", { alertState: "resolved" }, over],
  ["what is over, but may have been heard", { alertState: "resolved", mayBeRepeat: true }, null],
  ["what was overtaken", { isLaterTold: true }, overtaken],
  ["what was overtaken, but may have been heard", { isLaterTold: true, mayBeRepeat: true }, null],
  ["an end that was waited for", { action: "resolve", alertState: "resolved", isEarlierTold: true }, null],
  ["the end of what nobody heard of", { action: "resolve", alertState: "resolved" }, unheard],
  ["an acknowledgement of what nobody heard of", { action: "acknowledge" }, unheard],
  ["an acknowledgement of what is over", { action: "acknowledge", alertState: "resolved", isEarlierTold: true }, over],
] as const)("%s", (_, given, reason) => {
  expect(sendDecisionOf({ ...fresh, ...given })).toEqual(reason === null ? { send: true } : { send: false, reason });
});
