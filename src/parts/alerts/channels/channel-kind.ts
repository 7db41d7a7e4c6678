import type { z } from "zod";
import type { SignatureScheme } from "../../../core/contract/signature/verification.ts";
import type { Clock } from "../../../platform/clock.ts";
import type { AlertItem, SentMessage } from "../message.ts";
import type { Channel } from "./channel.ts";
import type { DestinationGuard } from "../../../platform/http/destination-guard.ts";
import { type HttpPost, createHttpPost } from "./http-post.ts";

/** Everything about a kind of channel. A kind is one file, listed in `channelKinds`. */
export interface ChannelKind<Settings extends KindSettings = KindSettings> {
  /** The settings of a channel of this kind. They contain no secret: they name the variable that holds one. */
  readonly settings: Settings;
  /** The longest list in one message. The channel would refuse or cut a longer one. */
  readonly list: ListLimits;
  /** Messages of one alert are an incident there, which stays open and may keep waking people until its end is sent. */
  readonly keepsIncidents?: true;
  /** Opens a channel without contacting it. Throws `CannotOpen`. */
  open(settings: z.infer<Settings>, deps: ChannelDeps): Channel<SentMessage>;
}

type KindSettings = z.ZodObject<{ kind: z.ZodLiteral<string> }>;

/** Gives `open` the type of its settings. */
export const channelKind = <Settings extends KindSettings>(kind: ChannelKind<Settings>): ChannelKind<Settings> => kind;

export interface ChannelDeps {
  guard: DestinationGuard;
  /** Wall clock. */
  clock: Clock;
  /** The value of a variable ALERT_…; null where it is not set. */
  secretOf: (variable: string) => string | null;
  /** Null where no mail is configured. */
  smtp: { url: string; from: string } | null;
  /** The scheme by which this deployment verifies webhooks. */
  scheme: SignatureScheme;
  /** The address of the runbooks: `RUNBOOKS_URL`. Null: their path. */
  runbooksUrl: string | null;
  writeLine: (line: string) => void;
}

/** The reason why a channel cannot work, and the remedy. Shows no value of a variable. */
export class CannotOpen extends Error {}

/** The value of a variable that the settings name. Throws `CannotOpen`. */
export function secret(variable: string, { secretOf }: Pick<ChannelDeps, "secretOf">): string {
  const value = secretOf(variable);
  if (value === null) throw new CannotOpen(`set ${variable} or ${variable}_FILE`);
  return value;
}

/** Posts to an address that comes from `variable`. Throws `CannotOpen`. */
export function httpTo(text: string, variable: string, deps: Pick<ChannelDeps, "guard" | "clock">): HttpPost {
  if (!URL.canParse(text) || !/^https?:/i.test(text)) throw new CannotOpen(`${variable} is no URL`);
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") {
    throw new CannotOpen(`${variable} has a user name or password in it, which is not sent`);
  }
  const refused = deps.guard.refusal(url);
  if (refused !== null) throw new CannotOpen(`${variable}: ${refused}`);
  return createHttpPost(deps, url);
}

interface ListLimits {
  /** In characters, as the channel writes an item. */
  size: number;
  sizeOf(item: AlertItem): number;
}

/** The size of an item for a channel that writes it about as JSON does. */
export const asJson = (item: AlertItem): number => JSON.stringify(item).length;
