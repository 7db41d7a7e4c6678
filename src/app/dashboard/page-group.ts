import type { Permission } from "../people/permissions.ts";
import type { Html, HtmlPart } from "../../platform/html.ts";
import type { Tone } from "./elements/values.ts";
import type { PageDeps, Route } from "./route.ts";

/** Pages that belong together: a folder of `pages/`. */
export interface PageGroup {
  /** Its place in the navigation of every page; null: it has none. */
  place: Place | null;
  routes: readonly Route[];
  /** Its card on the home page; absent: none. */
  summary?: Summary;
  /** What home says before all else; of one group at most. */
  lead?: Lead;
}

export interface Place {
  path: string;
  name: string;
  access: Permission;
}

export interface Summary {
  /** Visitors without it do not see the card. */
  access: Permission;
  /**
   * Reads little: home reads all groups in parallel. One that throws is shown as unknown, the others as they are. The
   * same for every permitted visitor: home keeps a slow one.
   */
  read(deps: PageDeps): Promise<SummaryCard>;
}

/** How far what is shown can be trusted. */
export interface Lead {
  /** Two statements. */
  read(deps: PageDeps): Promise<{
    tone: Tone;
    body: Html;
    /** Why it cannot, each one sentence with where to look; empty where it can. */
    reasons: readonly { text: string; path: string }[];
  }>;
}

/** A card of home. The whole of it leads to `path`. */
export interface SummaryCard {
  title: string;
  path: string;
  /** `bad` and `warn` need attention; home lists these first. */
  tone: Tone;
  /** A number, or a few words. */
  headline: HtmlPart;
  facts: readonly { name: string; value: HtmlPart }[];
  /** Matters that need attention, each one sentence; empty where all is well. */
  reasons: readonly string[];
}
