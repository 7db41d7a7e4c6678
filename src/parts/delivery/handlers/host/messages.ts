import { z } from "zod";

/** Interval between two signs of life of the host. */
export const beatMs = 250;

/** Longer ones are no names: a handler's message in the channel costs the worker no more than reading it. */
const name = z.string().max(1_000);
const names = z.array(name).max(10_000);
const path = z.string().max(10_000);

/** Messages from the supervisor to the host: the first is `start`. Values of the environment are not included. */
export const toHost = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("start"),
    /** The supervisor's: the host must not outlive it. */
    parentPid: z.int(),
    databaseUrl: z.string(),
    /** The paths of the handlers that it runs. */
    files: z.array(path),
    /** Null: the configured one. */
    service: z.object({ baseUrl: z.string(), apiKey: z.string() }).nullable(),
    /** The feed's position when the supervisor started: handlers start there, however long loading takes. Null: now. */
    now: z.int().nonnegative().nullable(),
  }),
  /** The answer to `loaded`: which of these files it runs. */
  z.object({ type: z.literal("run"), files: z.array(path) }),
  z.object({ type: z.literal("stop") }),
]);
export type ToHost = z.output<typeof toHost>;
export type HostStart = Extract<ToHost, { type: "start" }>;

/** Messages from the host to the supervisor. A handler has the same channel, so any message may arrive. */
export const fromHost = z.discriminatedUnion("type", [
  z.object({ type: z.literal("loading"), file: path }),
  /** A file is not usable, in words for people. The host loads the others. */
  z.object({ type: z.literal("problem"), file: path, message: z.string().max(10_000) }),
  z.object({
    type: z.literal("loaded"),
    handlers: z.array(z.object({ file: path, name, deadlineMs: z.number() })).max(10_000),
  }),
  /** A handler that had no calls in progress has one now. */
  z.object({ type: z.literal("began"), handler: name }),
  z.object({
    type: z.literal("beat"),
    /** The handlers that have calls in progress. */
    running: names,
    sinceProgressMs: z.number(),
    /** The part of the heap's limit that is in use. */
    heapShare: z.number(),
  }),
  /** The host ends by itself. */
  z.object({ type: z.literal("ending"), why: z.string().max(100_000) }),
]);
export type FromHost = z.output<typeof fromHost>;
export type LoadedHandler = Extract<FromHost, { type: "loaded" }>["handlers"][number];
