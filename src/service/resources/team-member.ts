import { z } from "zod";

import { openEnum, timestamp, wireId } from "./wire-types.ts";

export const teamMemberStatuses = ["pending", "active", "blocked"] as const;

/** Somebody with access to the merchant's account (spec, TeamMember). */
export const teamMemberSchema = z.looseObject({
  id: wireId,
  email: z.string(),
  first_name: z.string().nullish(),
  last_name: z.string().nullish(),
  phone_number: z.string().nullish().describe("US E.164"),
  status: openEnum(teamMemberStatuses),
  role: z.looseObject({ id: wireId, name: z.string() }),
  created_at: timestamp,
  updated_at: timestamp.nullish(),
});

/** What a team member may do (spec, Role). */
export const roleSchema = z.looseObject({
  id: wireId,
  name: z.string(),
  description: z.string().nullish(),
  default_page: z.string().nullish(),
  permissions: z.array(z.string()).optional().describe("With expand=permissions"),
});
