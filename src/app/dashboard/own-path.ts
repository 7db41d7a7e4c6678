/** A path within the dashboard: a link's sender must not decide where a sign-in leads. */
export function ownPath(text: string | null): string {
  if (text === null || !/^\/(?![/\\])[\x21-\x7e]*$/.test(text) || text.includes("\\")) return "/";
  return text.startsWith("/sign-in") ? "/" : text;
}
