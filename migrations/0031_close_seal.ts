import type { Knex } from "knex";

/**
 * A close is sealed: one manifest lists everything that was frozen with its hash, and the hash of the close before it.
 * `sha256` of such a close is the SHA-256 of its manifest. Who closed the month, and what its verdict rested on, are
 * frozen too.
 */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    alter table reports.closes
      add column closed_by text,
      add column previous_sha256 text,
      add column manifest text,
      drop constraint closes_sha256_covers_check,
      -- 'rows' and 'results': closed by an earlier version, whose hash covers less.
      add constraint closes_sha256_covers_check check (sha256_covers in ('rows', 'results', 'everything')),
      add constraint closes_sealed check (
        sha256_covers <> 'everything' or (coalesce(btrim(closed_by), '') <> '' and manifest is not null));
    comment on column reports.closes.manifest is
      'JSON arrays, a line each: the facts of the close, then each member with its number of lines and their SHA-256.';
    comment on column reports.closes.previous_sha256 is 'sha256 of the month before; null for the first close';

    create table reports.closed_evidence (
      close bigint not null references reports.closes (id) deferrable initially deferred,
      kind text collate "C" not null check (kind in ('currencies', 'runs', 'coverage', 'findings')),
      n bigint not null,
      content jsonb not null,
      primary key (close, kind, n)
    );
    comment on table reports.closed_evidence is
      'What a close rests on, as it stood: decimals of the currencies, runs and slices that were read, findings with '
      'their acknowledgements.';
    create trigger closed_evidence_append_only before update or delete or truncate on reports.closed_evidence
      for each statement execute function reports.refuse_change();
  `);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`
    drop table reports.closed_evidence;
    alter table reports.closes
      drop constraint closes_sealed,
      drop constraint closes_sha256_covers_check,
      drop column manifest,
      drop column previous_sha256,
      drop column closed_by;
    alter table reports.closes
      add constraint closes_sha256_covers_check check (sha256_covers in ('rows', 'results')) not valid`);
}
