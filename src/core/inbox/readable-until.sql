-- The same as feed.readable_until() for the events of the inbox.
create or replace function inbox.readable_until() returns bigint language plpgsql volatile as $$
begin
  return feed.complete_until('inbox.event_numbers', 7257);
end
$$;
comment on function inbox.readable_until() is
  'Read inbox.receipts up to this number, in the order of seq, in a later statement: no event up to it is missing.';
