import type { Permission } from "../people/permissions.ts";
import type { HtmlPart } from "../../platform/html.ts";
import type { Tone } from "./elements/state.ts";
import type { PageDeps, Route } from "./route.ts";

/** Pages that belong together: a folder of `pages/`. */
export interface PageGroup {
  /** Its place in the list at the side of every page; null: it has none. */
  place: Place | null;
  routes: readonly Route[];
  /** What home says of it; absent: nothing. */
  summary?: Summary;
}

export interface Place {
  path: string;
  name: string;
  access: Permission;
}

export interface Summary {
  /** Whoever lacks it does not see the card. */
  access: Permission;
  /**
   * Reads little: home asks all groups at once. One that throws is shown as unknown, the others as they are. The same
   * for all who may see it: home keeps one that is slow to read.
   */
  read(deps: PageDeps): Promise<SummaryCard>;
}

/** A card of home. The whole of it leads to `path`. */
export interface SummaryCard {
  title: string;
  path: string;
  /** `bad` and `warn` are what somebody has to look at; home names these first. */
  tone: Tone;
  /** A number, or a few words. */
  headline: HtmlPart;
  facts: readonly { name: string; value: HtmlPart }[];
  /** What somebody has to look at, each one sentence; empty where all is well. */
  reasons: readonly string[];
}
