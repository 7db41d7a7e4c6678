/**
 * `silent`: connects and sends nothing. `forging`: sends a request with a wrong signature every second. `unread`:
 * pipelines requests and reads no answer.
 */
export type Attack = "silent" | "forging" | "unread";
