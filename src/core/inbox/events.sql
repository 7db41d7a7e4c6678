create or replace view inbox.events as
  select r.seq, r.event_id, r.raw_sha256, r.type, r.api_version, r.event_created_at, r.received_at,
         r.raw, r.secret_id, p.state, p.attempts, p.next_attempt_at, p.reason, p.resource_type,
         p.resource_id, 1 + coalesce(s.repeats, 0) as deliveries, p.settled_at
  from inbox.receipts r join inbox.progress p using (seq)
  left join inbox.seen s on s.created_at = coalesce(r.event_created_at, '-infinity')
    and s.body = encode(substr(r.raw_sha256, 1, 16), 'hex')::uuid;
