import { z } from "zod";

const rate = z.number().min(0).max(1);

const faultTiming = (maxMs: number) => z.number().min(0).max(60_000).default(maxMs);

/** An answer that is forced instead of drawn: the next `times` requests that fit, or all of them. */
const forced = z.strictObject({
  /** Such as `POST /orders`, as the contract writes it; `*` is every endpoint. */
  endpoint: z.string().max(200).default("*"),
  /** Any code of the interface. */
  code: z.string().max(100),
  param: z.string().max(100).nullable().default(null),
  /** `after`: the work is done and its answer lost, so that only an idempotency key saves the client. */
  when: z.enum(["before", "after"]).default("before"),
  times: z.int().min(1).nullable().default(null),
});

export type ForcedAnswer = z.output<typeof forced>;

/** A rate alone, or with its details. */
function fault<Shape extends z.ZodRawShape>(details: Shape) {
  const schema = z.strictObject({ rate: rate.default(0), ...details });
  return z.preprocess(
    (value) => (typeof value === "number" ? { rate: value } : value),
    schema.prefault({} as z.input<typeof schema>),
  );
}

/**
 * Rates are 0 to 1. `drop` … `corrupt` befall one delivery; the last four change what is
 * sent. `api` befalls requests to the service that bear a good key.
 */
export const faultsSchema = z.strictObject({
  seed: z.union([z.int(), z.string().max(200)]).default(0),
  delivery: z
    .strictObject({
      /** Lost for good: never sent, never retried. */
      drop: fault({}),
      /** The same bytes a second time. */
      duplicate: fault({}),
      /** Sent late, by a wall time up to `max_ms`. */
      delay: fault({ max_ms: faultTiming(300) }),
      /** Held back until later deliveries of the endpoint were answered, or `max_ms` have passed. */
      reorder: fault({ max_ms: faultTiming(250) }),
      /** Altered after signing. `soon`: a good copy follows at once; `schedule`: by the retry schedule; `never`. */
      corrupt: fault({ retry: z.enum(["soon", "schedule", "never"]).default("soon") }),
      /** An additional event of a type nobody knows, about the same object. */
      unknown_type: fault({}),
      /** Fields that the interface does not show. */
      extra_fields: fault({}),
      /** One optional field left out. */
      missing_field: fault({}),
      /** Only the id of the object. */
      thin_object: fault({}),
    })
    .prefault({}),
  api: z
    .strictObject({
      /** Answered late, by a wall time up to `max_ms`. */
      slow: fault({ max_ms: faultTiming(1000) }),
      error_500: fault({}),
      error_503: fault({}),
      error_429: fault({ retry_after_seconds: z.int().min(0).max(86_400).default(1) }),
      /** A page of a proxy instead of JSON. */
      html: fault({}),
      /** The connection ends before anything is done. */
      cut: fault({}),
      /** The connection ends after the work was done: the charge is made, the answer lost (statement 535). */
      cut_after: fault({}),
      force: z.array(forced).max(100).default([]),
    })
    .prefault({}),
});

export type Faults = z.output<typeof faultsSchema>;

export function noFaults(): Faults {
  return faultsSchema.parse({});
}
