-- online
-- The search of the dashboard finds customers by the beginnings of the words of their names, and of their e-mail address
-- before its @; without accents. Lengths are bounded, so that no row is refused for a long word. A query has to use this
-- very expression: customerWords in src/core/mirror/find-customers.ts.
create index concurrently if not exists customers_words on mirror.customers using gin (
  array_to_tsvector(string_to_array(trim(lower(regexp_replace(regexp_replace(normalize(
    left(coalesce(first_name, ''), 100) || ' ' || left(coalesce(last_name, ''), 100) || ' ' ||
    left(split_part(coalesce(email, ''), '@', 1), 100), NFD),
    '[\u0300-\u036f]+', '', 'g'), '[^[:alnum:]]+', ' ', 'g'))), ' '))
) with (fastupdate = off);

-- A customer's orders from the newest on, and those about a time; in place of orders_customer, which has no times.
create index concurrently if not exists orders_customer_created
  on mirror.orders (customer_id, created_at desc nulls last, id desc) where customer_id is not null;
drop index concurrently if exists mirror.orders_customer;

-- Numbers with small letters in them, in any case; as a rule numbers have none, and orders_number finds them.
create index concurrently if not exists orders_number_cased on mirror.orders (lower(order_number))
  where order_number <> upper(order_number);
