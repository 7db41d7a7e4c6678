-- Months that are being closed, or were. Whoever writes what a close consists of writes its row here, once: another
-- transaction that means the same close waits for the end of the first, whatever it sees.
create table reports.closings (
  -- Checked at the end of the transaction: nobody adds to a close that they do not seal.
  close bigint primary key references reports.closes (id) deferrable initially deferred
);
comment on table reports.closings is 'Closes that were begun, by which two transactions never write into the same one.';
