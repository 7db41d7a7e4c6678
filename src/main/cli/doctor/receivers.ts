import { tallyhook } from "../../../platform/command-line.ts";
import { counted, durationText } from "../../../platform/readable-text.ts";
import { type Receivers, readReceivers } from "../../../core/receiver/heartbeats.ts";
import type { Runtime } from "../../../app/runtime.ts";
import { type CheckResult, failed, ok, warning } from "../../../app/check-result.ts";

/** Checks that a receiver takes webhooks, and reports when the last one came. */
export async function checkReceivers(runtime: Pick<Runtime, "db">): Promise<CheckResult> {
  return judgeReceivers(await readReceivers(await runtime.db()));
}

function judgeReceivers(heard: Receivers): CheckResult {
  const name = "receiver";
  const { presence } = heard;
  const last = lastText(heard);
  const start = `start one: "${tallyhook("receiver")}" (or "${tallyhook("start")}" for everything at once)`;
  if (presence === null) {
    return warning(name, `none has ever run here, so nothing takes webhooks; ${last}`, start);
  }
  const { ready, unready, missing } = presence;
  if (ready === 0 && unready > 0) {
    return failed(
      name,
      `${counted(unready, "receiver runs and cannot store events", "receivers run and cannot store events")}; ${last}`,
      "ask its /readyz what it lacks, and read its log",
    );
  }
  if (ready === 0) {
    const silent = durationText(heard.now.getTime() - presence.lastReadyAt.getTime());
    return failed(
      name,
      `no receiver runs, so the service gets no answer; the last one was heard ${silent} ago; ${last}`,
      start,
    );
  }
  const run = counted(ready, "receiver runs", "receivers run");
  const troubles = [
    ...(unready > 0 ? [`${unready} cannot store events`] : []),
    ...(missing > 0 ? [counted(missing, "missed its heartbeat", "missed their heartbeats")] : []),
  ];
  return troubles.length === 0
    ? ok(name, `${run}; ${last}`)
    : warning(
        name,
        `${run}; ${troubles.join("; ")}; ${last}`,
        "read its log; if it was killed on purpose, this warning ends after an hour",
      );
}

function lastText({ lastAnswerAt, lastWebhookAt, now }: Receivers): string {
  const since = (at: Date | null) => (at === null ? "never" : `${durationText(now.getTime() - at.getTime())} ago`);
  return `last webhook stored: ${since(lastWebhookAt)}, last one answered: ${since(lastAnswerAt)}`;
}
