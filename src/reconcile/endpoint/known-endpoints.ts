import type { Knex } from "knex";

/** An endpoint that was registered, or whose secret was rotated, from here. */
export interface KnownEndpoint {
  id: string;
  url: string;
  /** Of the database's secrets. */
  secretId: string | null;
  /** Service time; until then its former secret signs, too. */
  rotationEndsAt: Date | null;
}

interface KnownRow {
  id: string;
  url: string;
  secret_id: string | null;
  rotation_ends_at: Date | null;
}

/** Oldest first. */
export async function listKnownEndpoints(db: Knex): Promise<KnownEndpoint[]> {
  const rows = await db<KnownRow>("reconcile.endpoints").orderBy(["registered_at", "id"]);
  return rows.map((row) => ({
    id: row.id,
    url: row.url,
    secretId: row.secret_id,
    rotationEndsAt: row.rotation_ends_at,
  }));
}

/** Remembers which secret an endpoint signs with. Repeatable; the last call wins. */
export async function rememberEndpoint(db: Knex, endpoint: KnownEndpoint): Promise<void> {
  await db("reconcile.endpoints")
    .insert({
      id: endpoint.id,
      url: endpoint.url,
      secret_id: endpoint.secretId,
      rotation_ends_at: endpoint.rotationEndsAt,
    })
    .onConflict("id")
    .merge(["url", "secret_id", "rotation_ends_at"]);
}

/** Its secret stays: what was sent before may still arrive. */
export async function forgetEndpoint(db: Knex, id: string): Promise<void> {
  await db("reconcile.endpoints").where({ id }).delete();
}
