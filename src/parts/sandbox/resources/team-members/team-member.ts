import type { teamMemberStatuses } from "../../../../core/contract/resources/team-members.ts";
import type { Ids } from "../../engine/ids.ts";
import type { Table } from "../../engine/store/table.ts";

export interface RoleRecord {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly default_page: string;
  readonly permissions: readonly string[];
  readonly created_at: string;
}

export interface TeamMemberRecord {
  readonly id: string;
  readonly email: string;
  readonly first_name: string;
  readonly last_name: string;
  readonly phone_number: string | null;
  readonly status: (typeof teamMemberStatuses)[number];
  readonly role: { readonly id: string; readonly name: string };
  /** Whether the address has an account, which it gets when an invitation is accepted. Not part of answers. */
  readonly has_account: boolean;
  readonly created_at: string;
  readonly updated_at: string;
}

/** A message that the service would have sent by e-mail. */
export interface OutboxMessage {
  readonly id: string;
  readonly kind: "invitation" | "set_password";
  readonly to: string;
  readonly team_member_id: string;
  readonly created_at: string;
}

/** A role, with its permissions if requested. */
export function roleBody(role: RoleRecord, expand: readonly "permissions"[] = []): Record<string, unknown> {
  const { id, name, description, default_page, permissions } = role;
  const body = { id, name, description, default_page };
  return expand.includes("permissions") ? { ...body, permissions } : body;
}

export function teamMemberBody(member: TeamMemberRecord): Record<string, unknown> {
  const { has_account: _hasAccount, ...body } = member;
  return body;
}

/** The role that is neither listed nor assigned. */
export const ownerRole = "Owner";

const everything = [
  "customers:read",
  "customers:write",
  "orders:read",
  "orders:write",
  "subscriptions:read",
  "subscriptions:write",
  "products:read",
  "products:write",
  "coupons:read",
  "coupons:write",
  "team_members:read",
  "team_members:write",
];
const created_at = "2024-01-01T00:00:00.000Z";
const reading = everything.filter((permission) => permission.endsWith(":read"));

type RoleSeed = [name: string, description: string, page: string, permissions: string[]];

const roleSeeds: readonly RoleSeed[] = [
  [ownerRole, "Owns the account", "/dashboard", everything],
  ["Administrator", "Manages everything but the ownership", "/dashboard", everything],
  ["Developer", "Works on the integration", "/developers", reading],
  ["Finance", "Refunds and reports", "/orders", [...reading, "orders:write"]],
  ["Support", "Helps customers", "/customers", [...reading, "customers:write"]],
];

/** Adds the roles of every merchant, and the owner, who has no inviter and no phone. */
export function seedTeam(space: { ids: Ids; roles: Table<RoleRecord>; teamMembers: Table<TeamMemberRecord> }): void {
  for (const [name, description, default_page, permissions] of roleSeeds) {
    const id = space.ids.uuid();
    const role: RoleRecord = { id, name, description, default_page, permissions, created_at };
    space.roles.insert(role);
    if (name === ownerRole) space.teamMembers.insert(ownerWith(space.ids.uuid(), role));
  }
}

function ownerWith(id: string, role: RoleRecord): TeamMemberRecord {
  return {
    id,
    email: "owner@example.test",
    first_name: "Olive",
    last_name: "Owner",
    phone_number: null,
    status: "active",
    role: { id: role.id, name: role.name },
    has_account: true,
    created_at,
    updated_at: created_at,
  };
}
