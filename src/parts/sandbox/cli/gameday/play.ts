import type { Interface } from "node:readline/promises";
import { wallClock } from "../../../../platform/clock.ts";
import type { Fault } from "./faults.ts";
import type { Page } from "./pager.ts";
import type { Stage } from "./stage.ts";

export interface Played {
  fault: Fault;
  alert: Page | null;
  /** Milliseconds from the fault to the alert; null: it never fired. */
  firedMs: number | null;
  repairedMs: number | null;
  /** The reason why it does not count; null: it passed. */
  problem: string | null;
}

/** Longer than anything here takes: at the limit something hangs or is missing. */
const limitMs = 90_000;
/** After a person's Enter: the sweep runs every second. */
const endLimitMs = 25_000;

const sinceMs = (startMs: number): number => wallClock.now().getTime() - startMs;

interface Begun {
  startMs: number;
  from: number;
  alert: Page | null;
  firedMs: number | null;
}

async function begin(stage: Stage, fault: Fault): Promise<Begun> {
  const startMs = wallClock.now().getTime();
  const from = stage.pager.pages.length;
  await fault.make(stage);
  const alert = await stage.pager.wait(
    ({ action, rule, key }) => action === "trigger" && rule === fault.rule && key.startsWith(fault.key),
    { from, limitMs, signal: stage.signal },
  );
  return { startMs, from, alert, firedMs: alert === null ? null : sinceMs(startMs) };
}

/** The message that reports the end of the alert to its channels. */
const ended = (stage: Stage, fault: Fault, { alert, from }: Begun, withinMs: number): Promise<Page | null> =>
  stage.pager.wait(({ action, key }) => action === "resolve" && key === alert?.key, {
    from,
    limitMs: withinMs,
    signal: stage.signal,
    meanwhile: async () => void (await fault.passTime?.(stage)),
  });

/**
 * Makes a fault, waits for its alert, repairs it and waits for the end of the alert. A failure on the way is the
 * fault's problem: the others are still played.
 */
export async function check(stage: Stage, fault: Fault): Promise<Played> {
  try {
    return await checked(stage, fault);
  } catch (error) {
    stage.signal.throwIfAborted();
    const [problem = ""] = String(error).split("\n");
    return { fault, alert: null, firedMs: null, repairedMs: null, problem };
  }
}

async function checked(stage: Stage, fault: Fault): Promise<Played> {
  const begun = await begin(stage, fault);
  const { startMs, alert, firedMs } = begun;
  await fault.mend?.(stage);
  await fault.repair(stage);
  const played = { fault, alert, firedMs, repairedMs: null };
  if (alert === null) return { ...played, problem: `no alert ${fault.rule} came` };
  if (!alert.runbook.endsWith(`#${fault.rule}`)) {
    return { ...played, problem: `it links to ${alert.runbook}` };
  }
  if (!(await fault.isRepaired(stage))) return { ...played, problem: "the repair did not help" };
  if ((await ended(stage, fault, begun, limitMs)) === null) {
    return { ...played, problem: "the alert did not end" };
  }
  return { ...played, repairedMs: sinceMs(startMs), problem: null };
}

export interface Talk {
  lines: Interface;
  say(text: string): void;
}

/** Makes a fault, shows its alert alone, and lets people repair it. */
export async function practise(stage: Stage, fault: Fault, { lines, say }: Talk): Promise<Played> {
  const begun = await begin(stage, fault);
  const { startMs, alert, firedMs } = begun;
  const played = { fault, alert, firedMs, repairedMs: null };
  if (alert === null) return { ...played, problem: `no alert ${fault.rule} came` };
  say(pageText(alert));
  let hinted = 0;
  for (;;) {
    const answer = await lines.question("[Enter] check  [hint]  [mend]  [give up] > ", {
      signal: stage.signal,
    });
    switch (answer.trim().toLowerCase()) {
      case "hint":
        say(fault.hints[hinted] ?? "There are no more hints: mend, or give up.");
        hinted++;
        break;
      case "mend":
        await fault.mend?.(stage);
        say(
          fault.mend === undefined
            ? "No outside help is needed: you can repair this yourself."
            : "The outside part is done. You do the rest.",
        );
        break;
      case "give up":
        await fault.mend?.(stage);
        await fault.repair(stage);
        await ended(stage, fault, begun, limitMs);
        say(`${fault.says}\n${fault.hints.join("\n")}\nRunbook: ${alert.runbook}`);
        return { ...played, problem: "given up" };
      case "":
        if (!(await fault.isRepaired(stage).catch(() => false))) {
          stage.signal.throwIfAborted();
          say("Not yet: the problem that the alert reports is still there.");
        } else if ((await ended(stage, fault, begun, endLimitMs)) === null) {
          say("Better, but the alert has not ended yet. Does its section of the runbook name a further step?");
        } else {
          say(`Repaired. ${fault.says}`);
          return { ...played, repairedMs: sinceMs(startMs), problem: null };
        }
        break;
      default:
        say('Enter checks whether it is repaired. Or type "hint", "mend" or "give up".');
    }
  }
}

const pageText = ({ severity, title, facts, advice, runbook }: Page): string =>
  [
    "",
    `[${severity.toUpperCase()}] ${title}`,
    ...facts.map(({ label, value }) => `  ${label}: ${value}`),
    `What to do: ${advice}`,
    `Runbook: ${runbook}`,
    "",
  ].join("\n");
