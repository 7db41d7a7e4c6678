-- Has a row yield to what a read shows, when a person decided so (write/overwrite.ts).
-- Generated for mirror.customers; test/mirror/generated-sql.test.ts holds this file against it.

update mirror.customers
set version = '', absent_version = ''
where id = $1
