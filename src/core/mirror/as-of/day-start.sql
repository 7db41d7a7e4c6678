-- Where clocks go back to midnight, a day has two midnights. The first one counts; a cast would give the other.
create or replace function reports.day_start(p_day date, p_zone text) returns timestamptz
language sql stable parallel safe as $$
  select case when ((m.at - interval '1 microsecond') at time zone p_zone)::date = p_day then e.at else m.at end
  from (select p_day::timestamp at time zone p_zone as at) m
  cross join (select ((p_day - 1)::timestamp at time zone p_zone) + interval '24 hours' as at) e
$$;
