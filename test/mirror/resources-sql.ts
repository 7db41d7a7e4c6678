import type { MirrorResource } from "../../src/core/mirror/resources/resource.ts";

/** The text of src/core/mirror/resources.sql for these resources: what SQL has to know of the list. */
export const resourcesSql = (resources: readonly MirrorResource[]): string =>
  `-- Generated from src/core/mirror/resources.ts; test/mirror/generated-sql.test.ts holds this file against it, and writes it
-- again with -u.

-- The resources of the mirror, in their order.
create or replace function mirror.resources() returns table (n integer, resource text)
language sql immutable parallel safe rows ${resources.length} as $$
  values ${resources.map(({ name }, at) => `(${at + 1}, '${name}')`).join(", ")}
$$;

-- When an object was created, as the mirror has it; null for one that it does not have.
create or replace function mirror.created_at(p_resource text, p_id text) returns timestamptz
language sql stable parallel safe as $$
  select case p_resource
${resources.map(whenOf).join("\n")}
  end
$$;
`;

const whenOf = ({ name, table }: MirrorResource): string =>
  `    when '${name}' then (select m.created_at from mirror.${table} m where m.id = p_id)`;
