/** A person who runs a command, in the form of the functions' actor argument. */
export const byCommand = (name: string) => ({
  accountId: null,
  name,
  via: "command line" as const,
  address: null,
});
