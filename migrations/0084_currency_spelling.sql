-- online
-- A currency has one spelling in the columns, the interface's lower case: rows of a release before may have another.
-- Such a service is an exception, so that each of these reads its table once and changes nothing, as a rule.

-- repeat
update mirror.orders set currency = lower(currency collate "C") where id in (
  select id from mirror.orders where currency <> lower(currency collate "C") limit 5000);

-- repeat
update mirror.transactions set currency = lower(currency collate "C") where id in (
  select id from mirror.transactions where currency <> lower(currency collate "C") limit 5000);

-- repeat
update mirror.subscriptions set currency = lower(currency collate "C") where id in (
  select id from mirror.subscriptions where currency <> lower(currency collate "C") limit 5000);
