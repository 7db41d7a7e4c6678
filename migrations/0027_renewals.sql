-- online
-- Renewals by id: of the declined orders of months, the board of dunning reads these alone. An order's cycle never
-- changes, so each change of its status stays HOT (0011).
create index concurrently if not exists orders_renewals on mirror.orders (id) where subscription_cycle > 1;
