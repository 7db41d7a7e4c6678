import type Router from "@koa/router";

import { modes } from "../mode.ts";
import { acceptInvitation, blockMember } from "../operations/team-members.ts";
import { notFound } from "../refusal.ts";
import type { Space } from "../space.ts";
import type { State } from "../state.ts";
import type { TeamMemberRecord } from "../team-records.ts";
import { teamMemberBody } from "../wire/team.ts";
import type { ControlDeps } from "./control.ts";
import { addControl } from "./control.ts";
import { nothing } from "./fields.ts";

const memberMoves = { accept: acceptInvitation, block: blockMember } as const;

/** `POST /_sandbox/team_members/{id}/accept|block`: what the invited person, or the account's owner, would do elsewhere. */
export function addTeamMembers(router: Router, { state }: ControlDeps): void {
  for (const [name, move] of Object.entries(memberMoves)) {
    addControl(router, {
      method: "POST",
      path: `/team_members/:id/${name}`,
      query: nothing,
      body: nothing,
      run({ params }) {
        const { space, member } = memberAnywhere(state(), params["id"] ?? "");
        return teamMemberBody(move(space, member));
      },
    });
  }
}

function memberAnywhere(state: State, id: string): { space: Space; member: TeamMemberRecord } {
  for (const { spaces } of state.merchants.values()) {
    for (const mode of modes) {
      const member = spaces[mode].teamMembers.get(id);
      if (member !== undefined) return { space: spaces[mode], member };
    }
  }
  throw notFound("team member");
}
