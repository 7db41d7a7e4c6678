import type { Knex } from "knex";

/** The statements that knex sends during `work`. */
export async function statementsOf(db: Knex, work: () => Promise<unknown>): Promise<string[]> {
  const statements: string[] = [];
  const note = ({ sql }: { sql: string }): void => void statements.push(sql);
  db.on("query", note);
  try {
    await work();
  } finally {
    db.off("query", note);
  }
  return statements;
}
