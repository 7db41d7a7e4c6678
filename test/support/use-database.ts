import { afterAll, beforeAll } from "vitest";
import { type TestDatabase, createTestDatabase } from "./database.ts";

/** A migrated database for the tests of a file: made before the first, dropped after the last. */
export const useTestDatabase = (): TestDatabase => useDatabase(createTestDatabase);

/** The same for a database that is made otherwise, with its additional fields. */
export function useDatabase<Made extends TestDatabase>(make: () => Promise<Made>): Made {
  let made: Made | undefined;
  const ready = (): Made => {
    if (made === undefined) throw new Error("The database is not there before the first test.");
    return made;
  };
  beforeAll(async () => {
    made = await make();
  });
  afterAll(() => made?.destroy());
  // Tests use this from the beginning of their file, before the database exists.
  return new Proxy({} as Made, { get: (_, name) => Reflect.get(ready(), name) });
}
