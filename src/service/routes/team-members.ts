import { z } from "zod";

import { roleSchema, teamMemberSchema, teamMemberStatuses } from "../resources/team-member.ts";
import { defineEndpoint } from "./endpoint.ts";
import { expandQuery, listOf, pageQuery } from "./list-query.ts";
import { email, plainText } from "./request-fields.ts";
import { noBody, noParams, noQuery } from "./shared.ts";

export const listRoles = defineEndpoint({
  name: "listRoles",
  method: "GET",
  path: "/roles",
  summary: "List all roles but the Owner's, by name",
  permission: "team_members:read",
  idempotency: "none",
  params: noParams,
  query: expandQuery(["permissions"]),
  body: noBody,
  status: 200,
  answer: listOf(roleSchema),
  errors: [],
});

export const inviteTeamMember = defineEndpoint({
  name: "inviteTeamMember",
  method: "POST",
  path: "/team_members",
  summary: "Invite a team member",
  permission: "team_members:write",
  idempotency: "required",
  params: noParams,
  query: noQuery,
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
  idempotency: "none",
  params: noParams,
  query: pageQuery.extend({ status: z.enum(teamMemberStatuses).optional() }),
  body: noBody,
  status: 200,
  answer: listOf(teamMemberSchema),
  errors: [],
});
