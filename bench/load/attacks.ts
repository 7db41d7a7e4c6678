/**
 * `silent`: connects and says nothing. `forging`: sends a request with a wrong signature every second. `unread`: sends
 * requests one behind the other and reads no answer.
 */
export type Attack = "silent" | "forging" | "unread";
