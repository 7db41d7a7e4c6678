import { TallyhookError } from "../platform/errors.ts";
import { withRoleAdvice } from "../platform/postgres/errors.ts";

export interface CheckResult {
  check: string;
  /** `advice`: all is right, but could be better. */
  status: "ok" | "advice" | "warning" | "failed" | "skipped";
  detail: string;
  /** The action that fixes it. */
  remedy: string | null;
}

/** Runs a check. An unexpected error becomes a finding that does not show its message. */
export async function check(name: string, run: () => Promise<CheckResult>): Promise<CheckResult> {
  const [found] = await checkAll(name, async () => [await run()]);
  if (found === undefined) throw new Error(`the check ${name} found nothing`);
  return found;
}

/** The same for a check with several findings. */
export async function checkAll(name: string, run: () => Promise<CheckResult[]>): Promise<CheckResult[]> {
  try {
    return await run();
  } catch (unclear) {
    const error = withRoleAdvice(unclear);
    // Our own errors are made for people and hold no secrets. Other errors may, so their message is not shown.
    const detail = error instanceof TallyhookError ? error.message : "an unexpected error";
    return [failed(name, detail, null)];
  }
}

export const ok = (name: string, detail: string): CheckResult => ({
  check: name,
  status: "ok",
  detail,
  remedy: null,
});
export const skipped = (name: string, detail: string): CheckResult => ({
  ...ok(name, detail),
  status: "skipped",
});
export const advice = (name: string, detail: string, remedy: string): CheckResult => ({
  check: name,
  status: "advice",
  detail,
  remedy,
});
export const warning = (name: string, detail: string, remedy: string): CheckResult => ({
  check: name,
  status: "warning",
  detail,
  remedy,
});
export const failed = (name: string, detail: string, remedy: string | null): CheckResult => ({
  check: name,
  status: "failed",
  detail,
  remedy,
});
