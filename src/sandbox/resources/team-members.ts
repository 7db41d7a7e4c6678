import * as routes from "../../service/routes/team-members.ts";
import { answerWith, plainAnswer } from "../answer.ts";
import { listAnswer } from "../http/list.ts";
import type { Mounted } from "../http/mount.ts";
import { mounted } from "../http/mount.ts";
import { inviteTeamMember } from "../operations/team-members.ts";
import type { RoleRecord } from "../team-records.ts";
import { ownerRole } from "../team-seeds.ts";
import { roleBody, teamMemberBody } from "../wire/team.ts";
import { find } from "./find.ts";

/** All of them on one page (statement 145). */
const listRoles = mounted(routes.listRoles, (space, { query }) => {
  const roles = space.roles.all().filter(({ name }) => name !== ownerRole);
  return plainAnswer(200, {
    data: roles.sort(byName).map((role) => roleBody(role, query.expand)),
    url: "/v1/roles",
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
    url: "/v1/team_members",
    show: teamMemberBody,
    ...(query.status === undefined ? {} : { anyOf: { status: [query.status] } }),
  }),
);

export const teamMemberEndpoints: readonly Mounted[] = [listRoles, invite, list];
