import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fillInbox } from "../../bench/support/fill-inbox.ts";
import { newStream } from "../../bench/support/load-generator.ts";
import { checkStored } from "../../bench/support/stored-events.ts";
import { useTestDatabase } from "../support/use-database.ts";

const database = useTestDatabase();
const sent = newStream("real");
let client: pg.Client;

beforeAll(async () => {
  await fillInbox(database.url, sent, 200);
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});
afterAll(() => client.end());

test("what was answered is stored, repeats included", async () => {
  expect(sent).toMatchObject({ accepted: 200, distinct: 180 });
  await checkStored(client, sent, { isApplied: false });
});

test("an event that was answered and is not stored ends the benchmark", async () => {
  const { accepted, distinct } = sent;
  const one = { accepted: accepted + 1, distinct: distinct + 1 };
  await expect(checkStored(client, one, { isApplied: false })).rejects.toThrow(
    "181 different events were answered 200, 180 are in the inbox",
  );
});

test("a repeat that is stored twice ends the benchmark", async () => {
  const { accepted, distinct } = sent;
  const one = { accepted, distinct: distinct - 1 };
  await expect(checkStored(client, one, { isApplied: false })).rejects.toThrow(
    "179 different events were answered 200, 180 are in the inbox; 21 repeats were answered 200, 20 are counted",
  );
});

test("an event that no worker applied ends the benchmark", async () => {
  await expect(checkStored(client, sent, { isApplied: true })).rejects.toThrow("180 events are not applied");
});
