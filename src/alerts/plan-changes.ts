import { lastStage } from "./rules/story.ts";
import type { Stage, Story } from "./rules/story.ts";

export interface StoredAlert {
  id: number;
  state: "open" | "acknowledged" | "resolved";
  /** Names of the stages that its history has. */
  stages: ReadonlySet<string>;
}

export interface PlannedChange {
  story: Story;
  /** Which of the alerts of its key. */
  occurrence: number;
  /** Stages that the history lacks. */
  newStages: readonly Stage[];
  /** What is to be said: the end of the story where that is new. */
  announced: Stage | null;
}

/**
 * Holds a story against what is stored of it. Only the newest stage is ever announced: what is learned late has been
 * overtaken, so that what is sent is a part of the ordered story whatever the order of arrival. What began and ended
 * before it was learned is never announced, nor what asks only what an earlier stage has asked. Pure.
 */
export function planChange(
  story: Story,
  stored: StoredAlert | null,
  occurrence = 1,
): PlannedChange {
  const known = stored?.stages ?? new Set<string>();
  const newStages = story.stages.filter(({ name }) => !known.has(name));
  const last = lastStage(story);
  const isAsked = last.repeats !== undefined && known.has(last.repeats);
  const isOver = stored === null && last.change === "resolved";
  const isNews = !known.has(last.name) && !isAsked && !isOver;
  return { story, occurrence, newStages, announced: isNews ? last : null };
}
