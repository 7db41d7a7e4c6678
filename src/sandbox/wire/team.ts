import type { RoleRecord, TeamMemberRecord } from "../team-records.ts";

/** A role, with its permissions when they are asked for (spec, Role). */
export function roleBody(
  role: RoleRecord,
  expand: readonly "permissions"[] = [],
): Record<string, unknown> {
  const { id, name, description, default_page, permissions } = role;
  const body = { id, name, description, default_page };
  return expand.includes("permissions") ? { ...body, permissions } : body;
}

/** A team member (spec, TeamMember). */
export function teamMemberBody(member: TeamMemberRecord): Record<string, unknown> {
  const { has_account: _hasAccount, ...body } = member;
  return body;
}
