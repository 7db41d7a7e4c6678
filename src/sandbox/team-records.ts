import type { teamMemberStatuses } from "../service/resources/team-member.ts";

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
  /** Whether the address has belonged to an account since somebody accepted with it. Not shown. */
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
