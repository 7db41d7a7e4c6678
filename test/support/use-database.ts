import { afterAll, beforeAll } from "vitest";
import { type TestDatabase, createTestDatabase } from "./database.ts";

/** A migrated database for the tests of a file: made before the first, dropped after the last. */
export function useTestDatabase(): TestDatabase {
  let made: TestDatabase | undefined;
  const ready = (): TestDatabase => {
    if (made === undefined) throw new Error("The database is not there before the first test.");
    return made;
  };
  beforeAll(async () => {
    made = await createTestDatabase();
  });
  afterAll(() => made?.destroy());
  return {
    get url() {
      return ready().url;
    },
    get directUrl() {
      return ready().directUrl;
    },
    get environment() {
      return ready().environment;
    },
    get db() {
      return ready().db;
    },
    destroy: () => ready().destroy(),
  };
}
