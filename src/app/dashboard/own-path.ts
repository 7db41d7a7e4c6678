/** A path of the dashboard itself: whoever sends a link decides what follows a sign-in. */
export function ownPath(text: string | null): string {
  if (text === null || !/^\/(?![/\\])[\x21-\x7e]*$/.test(text) || text.includes("\\")) return "/";
  return text.startsWith("/sign-in") ? "/" : text;
}
