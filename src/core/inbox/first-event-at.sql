-- When the first event ever received was created, by the service's clock where the event gives it. Null without events.
create or replace function inbox.first_event_at() returns timestamptz language plpgsql stable as $$
begin
  return coalesce(
    (select d.first_event_at from inbox.dropped d),
    (select coalesce(r.event_created_at, r.received_at) from inbox.receipts r order by r.seq limit 1));
end
$$;
