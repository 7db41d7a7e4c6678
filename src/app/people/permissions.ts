/** The permissions. Each route of the dashboard names one. */
export const permissions = {
  "status:read": "see what Tallyhook does, without personal data",
  "person:read": "see names, addresses and e-mail addresses; using it is recorded",
  "payload:read": "see the bytes of events; using it is recorded",
  "report:read": "read and download reports",
  "case:write": "take on, snooze and note declined renewals, chargebacks and findings",
  "alert:write": "acknowledge, resend and silence alerts",
  "event:replay": "apply events again",
  "object:heal": "correct an object of the mirror from the service",
  "reconcile:run": "begin a reconciliation",
  "handler:write": "retry, skip, pause and resume handlers",
  "secret:read": "see which signing secrets are in use",
  "endpoint:write": "test and rotate the endpoint at the service",
  "month:read": "read everything that a month is signed on, notes of staff included; using it is recorded",
  "month:prepare": "prepare a month for its close",
  "month:close": "approve and close a month",
  "account:read": "see who may sign in, and who is signed in",
  "account:write": "add people, change their roles, end their sessions",
  "audit:read": "see who did what",
  "setting:read": "see the settings in force",
} as const;

export type Permission = keyof typeof permissions;

/** Sets of permissions by what people do. A person may have several. */
export const roles = {
  viewer: ["status:read"],
  support: ["status:read", "person:read", "case:write", "alert:write"],
  operator: [
    "status:read",
    "payload:read",
    "case:write",
    "alert:write",
    "event:replay",
    "object:heal",
    "reconcile:run",
    "handler:write",
    "secret:read",
    "endpoint:write",
    "setting:read",
  ],
  finance: ["status:read", "report:read", "case:write", "month:read", "month:prepare", "month:close"],
  admin: ["status:read", "account:read", "account:write", "audit:read", "setting:read"],
} as const satisfies Record<string, readonly Permission[]>;

export type Role = keyof typeof roles;

export const roleNames = Object.keys(roles) as Role[];

/** Unknown names, as of another version's roles, grant nothing. */
export function permissionsOf(names: readonly string[]): ReadonlySet<Permission> {
  return new Set(names.flatMap((name): readonly Permission[] => (isRole(name) ? roles[name] : [])));
}

export const isRole = (name: string): name is Role => Object.hasOwn(roles, name);
