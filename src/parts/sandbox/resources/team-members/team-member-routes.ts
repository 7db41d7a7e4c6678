import * as routes from "../../../../core/contract/resources/team-members.ts";
import { answerWith, plainAnswer } from "../../engine/answer.ts";
import { ApiError } from "../../engine/api-error.ts";
import type { Space } from "../../engine/space.ts";
import { listAnswer } from "../../http/list.ts";
import { type Mounted, mounted } from "../../http/mount.ts";
import { find } from "../find.ts";
import {
  type OutboxMessage,
  type RoleRecord,
  type TeamMemberRecord,
  ownerRole,
  roleBody,
  teamMemberBody,
} from "./team-member.ts";

/** All roles are on one page. */
const listRoles = mounted(routes.listRoles, (space, { query }) => {
  const roles = space.roles.all().filter(({ name }) => name !== ownerRole);
  return plainAnswer(200, {
    data: roles.sort(byName).map((role) => roleBody(role, query.expand)),
    url: `/v1${routes.listRoles.path}`,
    has_more: false,
    cursors: { next: null },
  });
});

function byName(a: RoleRecord, b: RoleRecord): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

const invite = mounted(routes.inviteTeamMember, (space, { body }, state) => {
  const { role_id, ...invitation } = body;
  const role = find(state, space, "roles", role_id, "role_id");
  return answerWith(201, inviteTeamMember(space, role, invitation), teamMemberBody);
});

const list = mounted(routes.listTeamMembers, (space, { query }) =>
  listAnswer(space, space.teamMembers, query, {
    url: `/v1${routes.listTeamMembers.path}`,
    show: teamMemberBody,
    ...(query.status === undefined ? {} : { anyOf: { status: [query.status] } }),
  }),
);

export const teamMemberEndpoints: readonly Mounted[] = [listRoles, invite, list];

export interface Invitation {
  first_name: string;
  last_name: string;
  email: string;
  phone_number: string;
}

/**
 * Invites a person. Refused for the Owner's role, and for an address with an active or pending membership. A blocked
 * person can be invited again, which makes a second membership. The mail is in the outbox.
 */
function inviteTeamMember(space: Space, role: RoleRecord, invitation: Invitation): TeamMemberRecord {
  if (role.name === ownerRole) {
    throw new ApiError("insufficient_permissions", "The Owner role cannot be assigned.", "role_id");
  }
  const memberships = membershipsOf(space, invitation.email);
  if (memberships.some(({ status }) => status !== "blocked")) {
    const message = "The address has an active or pending membership.";
    throw new ApiError("resource_already_exists", message, "email");
  }
  const at = space.time.iso();
  const member: TeamMemberRecord = {
    id: space.ids.uuid(),
    ...invitation,
    status: "pending",
    role: { id: role.id, name: role.name },
    has_account: hasAccount(space, invitation.email),
    created_at: at,
    updated_at: at,
  };
  space.teamMembers.insert(member);
  send(space, member);
  return member;
}

/** Accepts the invitation: the member can sign in. */
export function acceptInvitation(space: Space, member: TeamMemberRecord): TeamMemberRecord {
  if (member.status !== "pending") throw refusedMove(member, "accept an invitation");
  return change(space, { ...member, status: "active", has_account: true });
}

/** Revokes access. The interface shows the status, but not what causes it. */
export function blockMember(space: Space, member: TeamMemberRecord): TeamMemberRecord {
  if (member.status === "blocked") throw refusedMove(member, "be blocked");
  return change(space, { ...member, status: "blocked" });
}

function change(space: Space, changed: TeamMemberRecord): TeamMemberRecord {
  const stamped = { ...changed, updated_at: space.touch(changed.updated_at) };
  space.teamMembers.replace(stamped);
  return stamped;
}

function membershipsOf(space: Space, email: string): TeamMemberRecord[] {
  return space.teamMembers.inGroup("email", email.toLowerCase());
}

function hasAccount(space: Space, email: string): boolean {
  return membershipsOf(space, email).some(({ has_account }) => has_account);
}

/** Sends an invitation if the address has an account, else a set-password message. */
function send(space: Space, member: TeamMemberRecord): void {
  const message: OutboxMessage = {
    id: space.ids.uuid(),
    kind: member.has_account ? "invitation" : "set_password",
    to: member.email,
    team_member_id: member.id,
    created_at: member.created_at,
  };
  space.outbox.insert(message);
}

function refusedMove(member: TeamMemberRecord, action: string): ApiError {
  const message = `A team member with status ${member.status} cannot ${action}.`;
  return new ApiError("invalid_state_transition", message);
}
