-- Generated from src/core/mirror/resources.ts; test/mirror/generated-sql.test.ts holds this file against it, and writes it
-- again with -u.

-- The resources of the mirror, in their order.
create or replace function mirror.resources() returns table (n integer, resource text)
language sql immutable parallel safe rows 4 as $$
  values (1, 'order'), (2, 'transaction'), (3, 'subscription'), (4, 'customer')
$$;

-- When an object was created, as the mirror has it; null for one that it does not have.
create or replace function mirror.created_at(p_resource text, p_id text) returns timestamptz
language sql stable parallel safe as $$
  select case p_resource
    when 'order' then (select m.created_at from mirror.orders m where m.id = p_id)
    when 'transaction' then (select m.created_at from mirror.transactions m where m.id = p_id)
    when 'subscription' then (select m.created_at from mirror.subscriptions m where m.id = p_id)
    when 'customer' then (select m.created_at from mirror.customers m where m.id = p_id)
  end
$$;
