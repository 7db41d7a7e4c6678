import { prometheusAvailable, prometheusInstalled } from "./prometheus.ts";

/** Once a run, before any test: reports that rules and dashboard are not checked, or on CI that they have to be. */
export function setup(): void {
  if (prometheusInstalled) return;
  if (prometheusAvailable) {
    throw new Error("prometheus and promtool are not installed, and on CI the alert rules must be checked by them");
  }
  console.warn(
    "prometheus or promtool is not installed: the tests of alert rules and dashboard are skipped. " +
      "Debian: apt-get install prometheus.",
  );
}
