import type { FoundBy } from "../desk.ts";
import { lastStage } from "./story.ts";
import type { Story } from "./story.ts";

const newsMs = 48 * 3_600_000;

/**
 * Whether a story that nobody was told is worth an alert. A first fill brings years of history: of that only what is
 * younger than 48 hours, open chargebacks, and dunning that still goes on. Pure.
 */
export function isNews(story: Story, foundBy: FoundBy, now: Date): boolean {
  if (foundBy !== "import") return true;
  const last = lastStage(story);
  if (last.change === "resolved") return false;
  if (now.getTime() - last.at.getTime() < newsMs) return true;
  return (
    last.rule === "chargeback" ||
    (story.facts["next_retry_at"] !== null && story.facts["next_retry_at"] !== undefined)
  );
}
