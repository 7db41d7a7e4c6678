import type { Permission } from "../people/permissions.ts";
import type { Html, HtmlPart } from "../../platform/html.ts";
import type { Tone } from "./elements/values.ts";
import type { PageDeps, Route } from "./route.ts";

/** Pages that belong together: a folder of `pages/`. */
export interface PageGroup {
  /** Its place in the navigation of every page; null: it has none. */
  place: Place | null;
  routes: readonly Route[];
  /** What home and the navigation say of it; absent: nothing. */
  summary?: Summary;
  /** Where the search field at the head of every page leads; of one group at most. */
  search?: Search;
  /** What home says before all else; of one group at most. */
  lead?: Lead;
}

/** The parts of the navigation: what one looks after, what one looks up, what it runs on. */
export const areas = ["Money", "Data", "Plumbing"] as const;

export interface Place {
  path: string;
  name: string;
  access: Permission;
  /** Null: above all areas. */
  area: (typeof areas)[number] | null;
}

export interface Search {
  /** Takes a POST with the typed text as `q`: it may be an e-mail address, which must not stand in an address. */
  path: string;
  access: Permission;
  /** Words for the empty field. */
  placeholder: string;
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
    /** Why it cannot be trusted; empty where it can. */
    reasons: readonly Reason[];
    /** The same in a tile. */
    also?: CardLine & { tile: (typeof tiles)[number] };
  }>;
}

/** The three things that people look for first. Other cards stand below them. */
export const tiles = ["Webhooks", "Money", "Month"] as const;

/** One line of home. The whole of it leads to `path`. */
export interface CardLine {
  title: string;
  path: string;
  tone: Tone;
  /** A number, or a few words. */
  headline: HtmlPart;
  facts: readonly { name: string; value: HtmlPart }[];
}

/** What home says of a group. */
export interface SummaryCard extends CardLine {
  /** The tile that the line stands in; absent: below the tiles. */
  tile?: (typeof tiles)[number];
  /** What the tile begins with. */
  top?: { stat: HtmlPart; about: HtmlPart };
  /** Drawn below that. */
  figure?: Html;
  /** A line in another tile than its own. */
  also?: CardLine & { tile: (typeof tiles)[number] };
  /** How many are open, as the navigation shows it beside the name; null: more than can be counted. Absent: none. */
  count?: number | null;
  /** Matters that need attention; empty where all is well. `bad` and `warn` of the card say how urgent they are. */
  reasons: readonly Reason[];
}

/** A matter that needs attention: one sentence, and the next click. */
export interface Reason {
  text: string;
  path: string;
  /** The words of the link. */
  next: string;
}
