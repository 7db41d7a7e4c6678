-- online
-- What people look an order up by: its number, and the last four digits of its card, the newest first.
create index concurrently if not exists orders_number on mirror.orders (order_number) where order_number is not null;
create index concurrently if not exists orders_card on mirror.orders (card_last_four, created_at)
  where card_last_four is not null;
