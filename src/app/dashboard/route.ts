import type { Readable } from "node:stream";
import type { Knex } from "knex";
import type { AnyAct } from "../people/act.ts";
import type { Actor } from "../people/audit.ts";
import type { Permission } from "../people/permissions.ts";
import type { Session } from "../people/sessions.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Html } from "../../platform/html.ts";
import type { Log } from "../../platform/log.ts";

/** What pages are given. */
export interface PageDeps {
  /** The dashboard's own pool: a slow page holds up nobody else, and a statement ends after three seconds. */
  db: Knex;
  /** The wall clock. */
  clock: Clock;
  /** The service's time, which a sandbox moves. */
  serviceClock: Clock;
  log: Log;
  /** IANA name of the zone that times are shown in. */
  timeZone: string;
}

/** A person who is signed in, and what they may do. */
export interface Visitor {
  session: Session;
  permissions: ReadonlySet<Permission>;
}

/** What the browser shows; `system`: what the person's system asks for. */
export const themes = ["system", "light", "dark"] as const;

export type Theme = (typeof themes)[number];

/** A request that may do what its route does. */
export interface PageRequest<V = Visitor> {
  visitor: V;
  /** Who acts, for the record. */
  actor: Actor;
  /** The parts of the path that its route names. */
  params: Readonly<Record<string, string>>;
  query: URLSearchParams;
  /** Of a POST; empty otherwise. */
  form: URLSearchParams;
  userAgent: string;
  /**
   * Whether a browser says that its person typed the address, opened it from another program, or chose it on the
   * dashboard. False for another site's link, and for programs that look at links in messages.
   */
  isChosen: boolean;
  theme: Theme;
  /** What a `leave` answer gave the browser to keep; null where there is nothing. */
  kept: string | null;
}

/** What a route answers with. */
export type PageAnswer =
  | {
      kind: "page";
      title: string;
      body: Html;
      /** Default: 200. */
      status?: number;
      /** The command that prints the same, at the foot of the page. */
      command?: string;
    }
  /** After a change: the browser reads the page again (303). A path of the dashboard. */
  | {
      kind: "redirect";
      to: string;
      /** Said once on the page that follows. */
      notice?: string;
      /** From now on, in this browser. */
      theme?: Theme;
      /** The token of a session that has begun; null: the session has ended. The browser forgets what a `leave` answer gave it. */
      token?: string | null;
    }
  /** To another site, such as the company's sign-in. The browser brings back `keep`, within ten minutes. */
  | { kind: "leave"; url: string; keep: string }
  | { kind: "file"; name: string; type: string; body: string | Buffer | Readable };

/** What is known of the way from a form to an act. */
export interface DoorOfAct {
  act: AnyAct;
  /** The fields that the form does not have. */
  given: Readonly<Record<string, unknown>>;
  /** The page that the form is on. */
  back(input: unknown): string;
}

interface RouteOf<Access, V> {
  method: "GET" | "POST";
  /** As @koa/router reads it: `/events/:seq`. */
  path: string;
  /**
   * What the visitor must be allowed to do. `signed-in`: what concerns the visitor alone; `anyone`: only how to sign in.
   */
  access: Access;
  /** Of a form that leads to an act (`act-route.ts`). */
  door?: DoorOfAct;
  answer(deps: PageDeps, request: PageRequest<V>): Promise<PageAnswer>;
}

/** A route of the dashboard. One that does not say who may use it does not compile. */
export type Route = RouteOf<Permission | "signed-in", Visitor> | RouteOf<"anyone", Visitor | null>;

/** The page that tells a person what is wrong. Thrown by routes; `message` says what to do. */
export class PageError extends Error {
  readonly status: number;
  /** Said below the message. */
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
