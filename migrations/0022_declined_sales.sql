-- online
-- Declined charges by time: who asks for the renewals in dunning reads these few instead of all sales. An index on the
-- orders would name their status, which keeps each change of it from being HOT (0011); transactions_reported has this
-- one's columns already.
create index concurrently if not exists transactions_declined on mirror.transactions (created_at) include (order_id)
  where type = 'sale' and status = 'failed' and deleted_at is null;
