import type { Knex } from "knex";
import type { z } from "zod";
import { storable } from "../../platform/postgres/values.ts";
import type { Begun, End } from "./condition.ts";
import type { AlertSeverity } from "./message.ts";
import type { Wording } from "./rules/wording.ts";
import { ruleSettings } from "./setting-schemas.ts";

/** For how long sweeps have been watching, by this machine's clock. */
export interface Watched {
  /** The first sweep ever, and how long ago it was. */
  first: Date;
  everMs: number;
  /**
   * Since sweeps have been at most `silence_worker.afterMinutes` apart. While no sweep ran, perhaps no worker did: an
   * absence proves nothing about that time.
   */
  steadyMs: number;
  /** The time between the last sweep and the one before; infinite at the first. */
  gapMs: number;
}

/** The context of a condition, apart from its readings. */
export interface WatchContext<Settings = unknown> extends Wording {
  settings: Settings;
  /** The time of what begins and ends, by the watch's clock. */
  at: Date;
  /** The zone of messages. IANA name. */
  timeZone: string;
  networkRegion: string;
  watched: Watched;
}

type Shape = z.core.$ZodLooseShape;
type ContextOf<Thresholds extends Shape> = WatchContext<z.output<ReturnType<typeof ruleSettings<Thresholds>>>>;

/** An alert condition that the sweep looks for, in one file. */
interface Definition<Rule extends string, Thresholds extends Shape, Questions, Found> {
  /** Its name in settings, commands and docs/runbooks.md. */
  rule: Rule;
  /** Its comment in alerts.example.jsonc. */
  about: string;
  severity: AlertSeverity;
  /** Its thresholds, each with a default. */
  settings: Thresholds;
  /** The clock that dates it; this machine's if omitted. */
  clock?: "service";
  /** It does not begin before sweeps have been steady for so long: after a downtime, things first catch up. */
  graceMs?: number;
  /** The interval of its polls; in every sweep if omitted. */
  everyMs?: number;
  /** Reads the database, or another part. Null: unknown, so no condition begins or ends. */
  read(trx: Knex, context: ContextOf<Thresholds>, questions: Questions): Promise<Found | null>;
  /** The condition that is true now; null: none. */
  begins(found: Found, context: ContextOf<Thresholds>): Begun | null | readonly (Begun | null)[];
  /** Whether an open alert of a key that does not begin is over; if omitted, it is. */
  isOver?(key: string, found: Found, context: ContextOf<Thresholds>): boolean;
  end: End | ((key: string, found: Found, context: ContextOf<Thresholds>) => End);
  /** Made-up facts, each by its event: `alerts test` shows their messages. */
  samples(context: ContextOf<Thresholds>): Record<string, NoInfer<Found>>;
}

/** A watch's findings in one poll. */
export interface Poll {
  begun: readonly Begun[];
  /** How the open alert of this key ends; null where it is still open. */
  endOf(key: string): End | null;
}

/** A watch's message about made-up facts. */
export interface Example {
  what: string;
  begun: readonly Begun[];
  end: End;
}

/** A watch with any readings. */
export interface Watch<Rule extends string = string> extends Pick<
  Definition<Rule, Shape, object, unknown>,
  "rule" | "clock" | "graceMs" | "everyMs"
> {
  schema: z.ZodType;
  poll(trx: Knex, context: WatchContext, questions: object): Promise<Poll | null>;
  examples(context: WatchContext): Example[];
}

/** Makes a watch from its file's definition. */
export function watch<const Rule extends string, Thresholds extends Shape, Questions extends object, Found>(
  definition: Definition<Rule, Thresholds, Questions, Found>,
) {
  const { about, severity, settings, read, isOver = () => true, end, samples } = definition;
  type Context = ContextOf<Thresholds>;
  // Stored keys are compared with these, which may contain outside text.
  const begins = (found: Found, context: Context): Begun[] =>
    [definition.begins(found, context)]
      .flat()
      .flatMap((one) => (one === null ? [] : { ...one, key: storable(one.key) }));
  const endOf = (key: string, found: Found, context: Context): End =>
    typeof end === "function" ? end(key, found, context) : end;
  const schema = ruleSettings(about, severity, settings);
  return {
    ...definition,
    schema,
    begins,
    async poll(trx: Knex, context: Context, questions: Questions): Promise<Poll | null> {
      const found = await read(trx, context, questions);
      if (found === null) return null;
      const begun = begins(found, context);
      const goesOn = (key: string) => begun.some((one) => one.key === key) || !isOver(key, found, context);
      return { begun, endOf: (key) => (goesOn(key) ? null : endOf(key, found, context)) };
    },
    /** With the thresholds' defaults: a deployment's may be above the made-up values. */
    examples: (given: WatchContext): Example[] => {
      const context = { ...given, settings: schema.parse({}) };
      return Object.entries(samples(context)).map(([what, found]) => {
        const begun = begins(found, context);
        return { what, begun, end: endOf(begun.at(-1)?.key ?? "", found, context) };
      });
    },
  };
}
