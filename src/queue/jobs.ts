import { z } from "zod";

/** The queues and what their jobs carry: numbers and names only, never data of an event. */
export const jobSchemas = {
  /** A committed batch of the inbox. */
  apply: z.object({ seqs: z.array(z.int().positive()).min(1).max(5_000) }),
  /** Something that runs on a schedule. */
  schedule: z.object({ task: z.string().min(1) }),
} as const;

export type QueueName = keyof typeof jobSchemas;
export type JobPayload<Name extends QueueName> = z.infer<(typeof jobSchemas)[Name]>;
