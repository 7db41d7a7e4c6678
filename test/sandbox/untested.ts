/** Why a statement has no test of its own. */
export const untestedReasons: Readonly<Record<number, string>> = {};
