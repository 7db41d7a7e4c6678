import type { Readable } from "node:stream";
import type { Knex } from "knex";
import type { AnyAct } from "../people/act.ts";
import type { Actor } from "../people/audit.ts";
import type { Field } from "../people/fields.ts";
import type { Permission } from "../people/permissions.ts";
import type { Session } from "../people/sessions.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Html } from "../../platform/html.ts";
import type { Log } from "../../platform/log.ts";

export interface PageDeps {
  /** The dashboard's own pool: a slow page holds up no other process, and a statement ends after three seconds. */
  db: Knex;
  /** The wall clock. */
  clock: Clock;
  /** The service's time, which a sandbox moves. */
  serviceClock: Clock;
  log: Log;
  /** IANA name of the zone that times are shown in. */
  timeZone: string;
}

/** A signed-in person and their permissions. */
export interface Visitor {
  session: Session;
  permissions: ReadonlySet<Permission>;
}

/** Colour themes; `system`: the person's system decides. */
export const themes = ["system", "light", "dark"] as const;

export type Theme = (typeof themes)[number];

/** A request that may do what its route does. */
export interface PageRequest<V = Visitor> {
  visitor: V;
  actor: Actor;
  /** The parts of the path that its route names. */
  params: Readonly<Record<string, string>>;
  query: URLSearchParams;
  /** The fields of a POST; empty otherwise. */
  form: URLSearchParams;
  userAgent: string;
  /**
   * Whether the browser reports that its person typed the address, opened it from another program, or chose it on the
   * dashboard. False for another site's link, and for programs that check links in messages.
   */
  isChosen: boolean;
  theme: Theme;
  /** The state that a `leave` answer stored in the browser; null where there is none. */
  kept: string | null;
}

/** A route's answer. */
export type PageAnswer =
  | {
      kind: "page";
      title: string;
      body: Html;
      /** Default: 200. */
      status?: number;
      /** The command that prints the same, at the foot of the page. */
      command?: string;
      /** The text of the search that the page answers: it stays in the search field. */
      searched?: string;
    }
  /** After a change: the browser reads the page again (303). A path of the dashboard. */
  | {
      kind: "redirect";
      to: string;
      /** Shown once on the page that follows. */
      notice?: string;
      /** The theme for this browser from now on. */
      theme?: Theme;
      /** The token of a session that has begun; null: the session has ended. The browser forgets what a `leave` answer gave it. */
      token?: string | null;
    }
  /** To another site, such as the company's sign-in. The browser brings back `keep`, within ten minutes. */
  | { kind: "leave"; url: string; keep: string }
  | { kind: "file"; name: string; type: string; body: string | Buffer | Readable };

/** The link between a form and its act. */
export interface DoorOfAct {
  act: AnyAct;
  /** The fields that the form does not have. */
  given: Readonly<Record<string, unknown>>;
  /** The page that the form is on. */
  back(input: unknown): string;
}

/** The list that a page shows, and its command. */
interface ListOfPage {
  command: string;
  filters: Readonly<Record<string, { is: Field<unknown>; flags: string; label?: string }>>;
}

interface RouteOf<Access, V> {
  method: "GET" | "POST";
  /** In @koa/router's syntax: `/events/:seq`. */
  path: string;
  /**
   * The permission that a visitor needs. `signed-in`: pages about the visitor's own account; `anyone`: sign-in only.
   */
  access: Access;
  /** Set for a form that leads to an act (`act-route.ts`). */
  door?: DoorOfAct;
  /** Set for the page of a list (`list.ts`). */
  list?: ListOfPage;
  answer(deps: PageDeps, request: PageRequest<V>): Promise<PageAnswer>;
}

/** A route for people who are signed in. */
export type VisitorRoute = RouteOf<Permission | "signed-in", Visitor>;

/** A route of the dashboard. A route without `access` does not compile. */
export type Route = VisitorRoute | RouteOf<"anyone", Visitor | null>;

/** An error page for people. Thrown by routes; `message` says what to do. */
export class PageError extends Error {
  readonly status: number;
  /** Shown below the message. */
  readonly details: Html | null;

  constructor(
    status: number,
    message: string,
    { details = null, ...options }: { cause?: unknown; details?: Html | null } = {},
  ) {
    super(message, options);
    this.name = "PageError";
    this.status = status;
    this.details = details;
  }
}

/** A path within the dashboard: a link's sender must not decide where a sign-in leads. */
export function ownPath(text: string | null): string {
  if (text === null || !/^\/(?![/\\])[\x21-\x7e]*$/.test(text) || text.includes("\\")) return "/";
  return text.startsWith("/sign-in") ? "/" : text;
}
