import type { ClientBase } from "pg";

/**
 * Makes a commit on this connection mean that it outlives a crash, whatever server, database or role are set to.
 * Only `off` is changed: what waits for standbys as well is stronger.
 */
export async function makeCommitsDurable(client: ClientBase): Promise<void> {
  await client.query(
    `select set_config('synchronous_commit', 'on', false)
      where current_setting('synchronous_commit') = 'off'`,
  );
}
