import pg from "pg";

/** The same server, another database. */
export function databaseUrl(serverUrl: string, database: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${database}`;
  return url.href;
}

/** Runs commands that belong to no database (CREATE DATABASE, …) on a connection of their own. */
export async function withServer<T>(serverUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: serverUrl });
  client.on("error", () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/**
 * Copies a database without connections. By files, not by the write-ahead log: at the template's size, that takes the
 * server a tenth of the time, where its data are in memory.
 */
export async function cloneDatabase(serverUrl: string, name: string, template: string): Promise<void> {
  await withServer(serverUrl, (client) =>
    client.query(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`),
  );
}
