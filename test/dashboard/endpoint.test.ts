import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type EndpointStand, clearEndpoints, setUpEndpoints } from "../main/cli/endpoint-stand.ts";
import { testKey } from "../../src/parts/sandbox/engine/keys.ts";
import { type DashboardStand, openDashboard, send, signedIn } from "./dashboard-stand.ts";

let stand: EndpointStand;
let dashboard: DashboardStand;
let viewer: string;
let operator: string;
let id: string;

beforeAll(async () => {
  stand = await setUpEndpoints();
  dashboard = await openDashboard(stand, {
    settings: stand.environment,
    service: { baseUrl: stand.service.url, apiKey: testKey },
  });
  viewer = (await signedIn(stand.db, ["viewer"])).cookie;
  operator = (await signedIn(stand.db, ["operator"])).cookie;
});
afterAll(async () => {
  await dashboard.close();
  await stand.close();
});
beforeEach(async () => {
  await clearEndpoints(stand);
  await stand.endpoint("register");
  id = (await stand.endpoints())[0]!["id"];
});

async function page(path: string, cookie = operator): Promise<{ status: number; text: string }> {
  const answer = await send(`${dashboard.url}${path}`, { cookie });
  return { status: answer.status, text: (await answer.text()).replaceAll(/\s+/g, " ") };
}

const post = (path: string, form: Record<string, string>) =>
  send(`${dashboard.url}${path}`, { cookie: operator, form });

const versionIn = ({ text }: { text: string }): string => /name="decided-on" value="([^"]*)"/.exec(text)?.[1] ?? "";

test("shows the endpoint as the service has it, and its buttons to those who may use them", async () => {
  const [theirs, mine] = [await page("/endpoint", viewer), await page("/endpoint")];
  expect(theirs.text).toContain(id);
  expect(theirs.text).toMatch(/class="state good">enabled/);
  expect(theirs.text).not.toContain('<form method="post" action="/endpoint');
  expect(mine.text).toContain(`/endpoint/${id}/rotate/confirm`);
});

test("shows every endpoint that was registered from here, with its address and a way to look after it", async () => {
  await stand.endpoint("register", "--url", "http://127.0.0.1:9/elsewhere");
  const { text } = await page("/endpoint");
  for (const { id: each, url } of await stand.endpoints()) {
    expect(text).toContain(url);
    expect(text).toContain(`/endpoint/${each}/rotate/confirm`);
  }
  expect(text).toContain("was registered from here and has the address");
});

test("rotates the secret once it was confirmed, stores it and records who did it", async () => {
  const [former] = await stand.secrets();
  const version = versionIn(await page(`/endpoint/${id}/rotate/confirm`));
  const answer = await post(`/endpoint/${id}/rotate`, {
    "decided-on": version,
    "grace-hours": "5",
  });
  expect([answer.status, answer.headers.get("location")]).toEqual([303, "/endpoint"]);
  const [secret] = await stand.secrets();
  expect([secret?.value, stand.service.given.at(-1)]).toEqual([stand.service.given.at(-1), secret?.value]);
  const recorded = await stand.db("people.audit").where({ action: "endpoint.rotated" }).orderBy("id", "desc").first();
  expect(recorded).toMatchObject({
    subject_id: id,
    before: { secret: former?.id },
    after: { secret: secret?.id },
  });
  expect(JSON.stringify(recorded)).not.toContain(secret?.value);
  expect((await page("/endpoint")).text).not.toContain(secret?.value);
});

test("rotates once by a double click", async () => {
  const version = versionIn(await page(`/endpoint/${id}/rotate/confirm`));
  const former = await stand.secrets();
  const clicks = [1, 2, 3].map(() => post(`/endpoint/${id}/rotate`, { "decided-on": version }));
  const statuses = (await Promise.all(clicks)).map(({ status }) => status);
  expect(statuses).toContain(303);
  expect(statuses.filter((status) => status !== 303 && status !== 409)).toEqual([]);
  const secrets = await stand.secrets();
  expect([secrets.length, secrets[0]?.value]).toEqual([former.length + 1, stand.service.given.at(-1)]);
});

test("rotates nothing on an earlier state, nor with a grace period that is none", async () => {
  const version = versionIn(await page(`/endpoint/${id}/rotate/confirm`));
  const wrong = await post(`/endpoint/${id}/rotate`, {
    "decided-on": version,
    "grace-hours": "-1",
  });
  await stand.endpoint("rotate");
  const late = await post(`/endpoint/${id}/rotate`, { "decided-on": version });
  expect([wrong.status, late.status, stand.service.given.length]).toEqual([400, 409, 2]);
});

test("goes on with a rotation whose answer never came", async () => {
  stand.service.faults.push("unanswered");
  const version = versionIn(await page(`/endpoint/${id}/rotate/confirm`));
  const lost = await post(`/endpoint/${id}/rotate`, { "decided-on": version });
  expect(lost.status).toBe(502);
  const asked = await page(`/endpoint/${id}/rotate/confirm`);
  expect((await page("/endpoint")).text).toContain("is not finished");
  const answer = await post(`/endpoint/${id}/rotate`, { "decided-on": versionIn(asked) });
  expect(answer.status).toBe(303);
  expect((await stand.secrets()).map(({ value }) => value)).toContain(stand.service.given.at(-1));
});

test("rotates nothing while a rotation waits for its answer, and does not take it for an interrupted one", async () => {
  const rotate = async () =>
    post(`/endpoint/${id}/rotate`, {
      "decided-on": versionIn(await page(`/endpoint/${id}/rotate/confirm`)),
    });
  stand.service.faults.push("unanswered");
  const struck = stand.service.struck("unanswered");
  const first = rotate();
  await struck;
  const second = await rotate();
  expect([second.status, stand.service.keys.length]).toEqual([409, 2]);
  expect(await second.text()).toContain("is registering the endpoint or rotating its secret");
  expect((await first).status).toBe(502);
});

test("has the service send an event, and leads to where it arrives", async () => {
  const answer = await post(`/endpoint/${id}/test`, {
    "decided-on": versionIn(await page("/endpoint")),
  });
  expect(answer.status).toBe(303);
  expect(answer.headers.get("location")).toMatch(/^\/events\?id=.{10}/);
  expect(await stand.db("people.audit").where({ action: "endpoint.tested" }).first()).toMatchObject({ subject_id: id });
  expect((await post(`/endpoint/${id}/test`, {})).status).toBe(409);
});

test("says that the service does not answer, and shows what it can", async () => {
  const away = await openDashboard(stand, {
    settings: stand.environment,
    service: { baseUrl: "http://127.0.0.1:9", apiKey: testKey },
  });
  try {
    const answer = await send(`${away.url}/endpoint`, { cookie: operator });
    expect([answer.status, (await answer.text()).includes("The service does not answer")]).toEqual([200, true]);
    expect((await send(`${away.url}/endpoint/${id}/rotate/confirm`, { cookie: operator })).status).toBe(502);
  } finally {
    await away.close();
  }
});
