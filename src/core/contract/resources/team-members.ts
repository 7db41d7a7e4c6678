import { z } from "zod";
import { defineEndpoint } from "../endpoint.ts";
import { expandQuery, listOf, pageQuery } from "../lists.ts";
import { email, plainText } from "../request-fields.ts";
import { openEnum, timestamp, wireId } from "../wire-types.ts";

export const teamMemberStatuses = ["pending", "active", "blocked"] as const;

/** A person with access to the merchant's account. */
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

/** The permissions of a team member. */
export const roleSchema = z.looseObject({
  id: wireId,
  name: z.string(),
  description: z.string().nullish(),
  default_page: z.string().nullish(),
  permissions: z.array(z.string()).optional().describe("With expand=permissions"),
});

export const listRoles = defineEndpoint({
  name: "listRoles",
  method: "GET",
  path: "/roles",
  summary: "List all roles but the Owner's, by name",
  permission: "team_members:read",
  query: expandQuery(["permissions"]),
  answer: listOf(roleSchema),
});

export const inviteTeamMember = defineEndpoint({
  name: "inviteTeamMember",
  method: "POST",
  path: "/team_members",
  summary: "Invite a team member",
  permission: "team_members:write",
  idempotency: "required",
  body: z.object({
    first_name: plainText().min(1),
    last_name: plainText().min(1),
    email,
    phone_number: z.string().regex(/^\+1\d{10}$/, "must be +1 and exactly 10 digits"),
    role_id: z.string(),
  }),
  status: 201,
  answer: teamMemberSchema,
  errors: ["resource_not_found", "resource_already_exists", "invalid_state_transition"],
});

export const listTeamMembers = defineEndpoint({
  name: "listTeamMembers",
  method: "GET",
  path: "/team_members",
  summary: "List team members",
  permission: "team_members:read",
  query: pageQuery.extend({ status: z.enum(teamMemberStatuses).optional() }),
  answer: listOf(teamMemberSchema),
});
