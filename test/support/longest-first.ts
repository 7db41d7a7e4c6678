import { type TestSpecification, BaseSequencer } from "vitest/node";

/** Their files start programs and servers, kill them, or wait for time limits: up to a minute each, however short. */
const longest = /\/test\/(?:e2e|queue|deployment|bench|support)\//;

/**
 * Long files first, so that none of them runs alone at the end. vitest orders by the last run's times; a fresh clone
 * has none, and vitest would begin with the largest files, which are not the longest.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification): boolean => longest.test(moduleId);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}
