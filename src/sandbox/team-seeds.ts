import type { Ids } from "./ids.ts";
import type { Table } from "./store/table.ts";
import type { RoleRecord, TeamMemberRecord } from "./team-records.ts";

/** The role that is neither listed nor assigned (spec, Roles and team members). */
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

/** The roles that every merchant has from the start, and the owner, whom nobody invited and whose phone nobody knows. */
export function seedTeam(space: {
  ids: Ids;
  roles: Table<RoleRecord>;
  teamMembers: Table<TeamMemberRecord>;
}): void {
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
