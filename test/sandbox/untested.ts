/** Why a statement has no test of its own. */
export const untestedReasons: Readonly<Record<number, string>> = {
  134: "the switch is not built: a client is tested with `created_at` ties instead",
  239: "not built: confirmations of the sandbox are immediate, as the interface says",
  509: "the limit of 30 s is wall time, too long to wait for in a test",
};
