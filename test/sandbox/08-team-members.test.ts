import { beforeAll, describe, expect, test } from "vitest";
import { type Called, type Json, expectRefusal, liveKey, startTestSandbox } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();
let role: Json;
beforeAll(async () => {
  await sandbox.control("POST", "/clock", { now: "2026-03-01T12:00:00Z" });
  [role] = (await sandbox.ok("GET", "/v1/roles")).data;
});

let invited = 0;

function invitation(more: object = {}): Record<string, unknown> {
  invited += 1;
  return {
    first_name: "Grace",
    last_name: "Hopper",
    email: `member${invited}@example.test`,
    phone_number: "+12025550123",
    role_id: role.id,
    ...more,
  };
}

const invite = (more: object = {}): Promise<Called> => sandbox.call("POST", "/v1/team_members", invitation(more));

const move = (member: Json, name: "accept" | "block"): Promise<Json> =>
  sandbox.control("POST", `/team_members/${member.id}/${name}`);

describe("roles", () => {
  test("all but the Owner's, sorted by name, on one page", async () => {
    const { data, url, has_more } = await sandbox.ok("GET", "/v1/roles");
    const names = data.map(({ name }: Json) => name);
    expect(names.length).toBeGreaterThan(2);
    expect(names).toEqual(names.toSorted());
    expect(names).not.toContain("Owner");
    expect([url, has_more]).toEqual(["/v1/roles", false]);
    for (const shown of data) {
      expect(Object.keys(shown).toSorted()).toEqual(["default_page", "description", "id", "name"]);
    }
  });

  test("permissions are there when they are asked for", async () => {
    const { data } = await sandbox.ok("GET", "/v1/roles?expand=permissions");
    expect(data.length).toBeGreaterThan(0);
    for (const { permissions } of data) {
      expect(permissions.length).toBeGreaterThan(0);
      expect(permissions.every((key: unknown) => typeof key === "string")).toBe(true);
    }
    const other = await sandbox.call("GET", "/v1/roles?expand=members");
    expectRefusal(other, 400, "invalid_value", "expand");
  });
});

describe("invitations", () => {
  test("five fields make a pending member with its role", async () => {
    const sent = invitation();
    const { status, body } = await sandbox.call("POST", "/v1/team_members", sent);
    const { role_id: _roleId, ...person } = sent;
    expect(status).toBe(201);
    expect(body).toEqual({
      id: body.id,
      ...person,
      status: "pending",
      role: { id: role.id, name: role.name },
      created_at: "2026-03-01T12:00:00.000Z",
      updated_at: "2026-03-01T12:00:00.000Z",
    });
  });

  test.each(["first_name", "last_name", "email", "phone_number", "role_id"])(
    "without %s there is none",
    async (field) => {
      expectRefusal(await invite({ [field]: undefined }), 400, "required_field", field);
    },
  );

  test.each(["+1202555012", "+120255501234", "+442025550123", "+1 202 555 0123", "+1202555ABCD"])(
    "the phone number %s is refused",
    async (phone_number) => {
      expectRefusal(await invite({ phone_number }), 400, "invalid_format", "phone_number");
    },
  );

  test("a malformed e-mail address is refused", async () => {
    expectRefusal(await invite({ email: "nobody" }), 400, "invalid_format", "email");
  });

  test("an unknown role, or one of another environment, is refused", async () => {
    const unknown = await invite({ role_id: crypto.randomUUID() });
    expectRefusal(unknown, 404, "resource_not_found", "role_id");
    const live = (await sandbox.ok("GET", "/v1/roles", undefined, { key: liveKey })).data[0];
    expectRefusal(await invite({ role_id: live.id }), 403, "environment_mismatch", "role_id");
  });

  test("a role of another merchant is unknown", async () => {
    const { keys } = await sandbox.control("POST", "/merchants", { name: "Another" });
    const options = { key: keys.test as string };
    const foreign = (await sandbox.ok("GET", "/v1/roles", undefined, options)).data[0];
    expectRefusal(await invite({ role_id: foreign.id }), 404, "resource_not_found", "role_id");
  });

  test("the Owner role cannot be assigned", async () => {
    const { roles } = await sandbox.control("GET", "/snapshot");
    const owner = roles.find(({ name }: Json) => name === "Owner");
    const refused = await invite({ role_id: owner.id });
    expectRefusal(refused, 403, "insufficient_permissions", "role_id");
  });

  test("an address with a pending or active membership gives 409, in any letter case", async () => {
    const { body: member } = await invite({ email: "Twice@example.test" });
    const again = { email: "twice@EXAMPLE.test" };
    expectRefusal(await invite(again), 409, "resource_already_exists", "email");
    await move(member, "accept");
    expectRefusal(await invite(again), 409, "resource_already_exists", "email");
  });

  test("somebody blocked can be invited again", async () => {
    const { body: member } = await invite({ email: "again@example.test" });
    await move(member, "block");
    const { status, body } = await invite({ email: "again@example.test" });
    expect([status, body.status]).toEqual([201, "pending"]);
    expect(body.id).not.toBe(member.id);
  });

  test("an account gets an invitation, anybody else a set-password message", async () => {
    const messagesTo = async (to: string): Promise<Json[]> =>
      (await sandbox.control("GET", `/outbox?to=${encodeURIComponent(to)}`)).data;
    const { body: fresh } = await invite({ email: "fresh@example.test" });
    expect(await messagesTo("fresh@example.test")).toMatchObject([
      { kind: "set_password", team_member_id: fresh.id, created_at: fresh.created_at },
    ]);
    await move(fresh, "accept");
    await move(fresh, "block");
    await invite({ email: "fresh@example.test" });
    const kinds = (await messagesTo("fresh@example.test")).map(({ kind }) => kind);
    expect(kinds).toEqual(["set_password", "invitation"]);
  });

  test("the idempotency key is required, and a replay invites once", async () => {
    const body = invitation();
    const without = await sandbox.call("POST", "/v1/team_members", body, { idempotency: null });
    expect(without.body.error.code).toBe("missing_idempotency_key");
    const idempotency = crypto.randomUUID();
    const first = await sandbox.ok("POST", "/v1/team_members", body, { idempotency });
    expect(await sandbox.ok("POST", "/v1/team_members", body, { idempotency })).toEqual(first);
    const { total } = await sandbox.control("GET", `/outbox?to=${first.email}`);
    const { team_members } = await sandbox.control("GET", "/snapshot");
    expect(total).toBe(team_members.length - 1);
  });
});

describe("members", () => {
  test("are listed newest first, page by page, by status", async () => {
    const own = await startTestSandbox();
    const [first] = (await own.ok("GET", "/v1/roles")).data;
    await own.control("POST", "/clock", { now: "2026-03-01T12:00:00Z" });
    const members: Json[] = (await own.ok("GET", "/v1/team_members")).data;
    const [owner] = members;
    for (let i = 0; i < 12; i++) {
      members.unshift(await own.ok("POST", "/v1/team_members", invitation({ role_id: first.id })));
      await own.control("POST", "/clock", { now: `2026-03-01T12:01:${10 + i}Z` });
    }
    const ids = (page: Json) => page.data.map(({ id }: Json) => id);
    const page = await own.ok("GET", "/v1/team_members");
    expect(ids(page)).toEqual(members.slice(0, 10).map(({ id }) => id));
    const next = `/v1/team_members?starting_after=${page.cursors.next}`;
    expect(ids(await own.ok("GET", next))).toEqual(members.slice(10).map(({ id }) => id));
    await own.control("POST", `/team_members/${members[0].id}/accept`);
    await own.control("POST", `/team_members/${members[1].id}/block`);
    expect(ids(await own.ok("GET", "/v1/team_members?status=active"))).toEqual([members[0].id, owner.id]);
    expect(ids(await own.ok("GET", "/v1/team_members?status=blocked"))).toEqual([members[1].id]);
    const pending = await own.ok("GET", "/v1/team_members?status=pending&limit=100");
    expect(pending.data).toHaveLength(10);
    const wrong = await own.call("GET", "/v1/team_members?status=gone");
    expectRefusal(wrong, 400, "invalid_value", "status");
    await own.close();
  });

  test("the owner is there from the start, without a phone number", async () => {
    const { data } = await sandbox.ok("GET", "/v1/team_members?limit=100&status=active");
    expect(data.at(-1)).toMatchObject({
      status: "active",
      phone_number: null,
      role: { name: "Owner" },
    });
    const taken = await invite({ email: data.at(-1).email });
    expectRefusal(taken, 409, "resource_already_exists", "email");
  });

  test("accepting makes a pending member active and moves updated_at", async () => {
    const { body: member } = await invite();
    const accepted = await move(member, "accept");
    expect(accepted).toEqual({ ...member, status: "active", updated_at: accepted.updated_at });
    expect(accepted.updated_at > member.updated_at).toBe(true);
    await expect(move(member, "accept")).rejects.toThrow("invalid_state_transition");
  });

  test("blocking makes them blocked, once", async () => {
    const { body: member } = await invite();
    await move(member, "accept");
    expect((await move(member, "block")).status).toBe("blocked");
    await expect(move(member, "block")).rejects.toThrow("invalid_state_transition");
  });

  test("reading and inviting need their own permission", async () => {
    const restricted = async (permission: string) => ({
      key: (await sandbox.control("POST", "/keys", { mode: "test", permissions: [permission] })).key,
    });
    const reader = await restricted("team_members:read");
    const writer = await restricted("team_members:write");
    for (const path of ["/v1/roles", "/v1/team_members"]) {
      expect((await sandbox.call("GET", path, undefined, reader)).status).toBe(200);
      const refused = await sandbox.call("GET", path, undefined, writer);
      expectRefusal(refused, 403, "insufficient_permissions");
    }
    const refused = await sandbox.call("POST", "/v1/team_members", invitation(), reader);
    expectRefusal(refused, 403, "insufficient_permissions");
    const { status } = await sandbox.call("POST", "/v1/team_members", invitation(), writer);
    expect(status).toBe(201);
  });
});
