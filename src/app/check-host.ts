import { type DestinationGuard, DestinationRefused } from "../platform/http/destination-guard.ts";
import { type CheckResult, failed, ok } from "./check-result.ts";

/** Checks that a host has an address that the guard permits. Resolves the name and connects to nothing. */
export async function checkHost(
  name: string,
  guard: DestinationGuard,
  host: string,
  detail: string,
): Promise<CheckResult> {
  try {
    const addresses = await guard.resolve(host);
    if (addresses.length > 0) return ok(name, detail);
  } catch (error) {
    if (error instanceof DestinationRefused) return failed(name, error.message, null);
  }
  return failed(name, `${host} has no address`, "check the name, and this machine's DNS");
}
