/** A person who runs a command, as functions take whoever decides something. */
export const byCommand = (name: string) => ({
  accountId: null,
  name,
  via: "command line" as const,
  address: null,
});
