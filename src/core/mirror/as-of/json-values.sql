create or replace function reports.text_of(p_value jsonb) returns text
language plpgsql immutable parallel safe as $$
begin
    return case when jsonb_typeof(p_value) = 'string' then p_value #>> '{}' end;
end
$$;
comment on function reports.text_of is
  'The text of a JSON string; null for any other value.';

create or replace function reports.code_of(p_value jsonb) returns text
language plpgsql immutable parallel safe as $$
begin
    return case when jsonb_typeof(p_value) = 'string' then left(p_value #>> '{}', 40) end;
end
$$;
comment on function reports.code_of is
  'A status or type, cut to 40 characters as in the mirror; null for any value that is not a string.';

-- Under "C" only A to Z change, and what is in lower case is in upper case still one: the journal's numbers rest on it.
create or replace function reports.one_spelling(p_currency text) returns text
language sql immutable parallel safe as $$
  select lower(p_currency collate "C")
$$;

create or replace function reports.currency_of(p_value jsonb) returns text
language sql immutable parallel safe as $$
  select reports.one_spelling(reports.code_of(p_value))
$$;
comment on function reports.currency_of is
  'A currency as the mirror''s columns spell it (canonicalCurrency in src/core/contract/wire-types.ts).';

create or replace function reports.id_of(p_value jsonb) returns text
language plpgsql immutable parallel safe as $$
begin
    return case when jsonb_typeof(p_value) = 'string'
                  and p_value #>> '{}' ~ '^[^\u0001-\u001f\u007f-\u009f]{1,255}$' then p_value #>> '{}' end;
end
$$;
comment on function reports.id_of is
  'An id: a string of 1 to 255 characters without control characters; null for any other value.';

-- Not a cast, which fails on a value that is no time, and takes texts that the mirror does not.
create or replace function reports.moment(p_value jsonb) returns timestamptz
language plpgsql immutable parallel safe as $$
declare
    given text := case when jsonb_typeof(p_value) = 'string' then p_value #>> '{}' end;
    m text[];
    day date;
    utc timestamp;
begin
    -- A short cut for the usual form, on the days that every month has: captures cost ten times as much as a match.
    if given ~ ('^[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]'
                || '([.][0-9]{1,6}|)(Z|[+]00:00)$') then
      return given::timestamptz;
    end if;
    m := regexp_match(given, '^([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})([.][0-9]{1,9}|)'
                             || '([Zz]|([+-])([0-9]{2})(:{0,1}[0-9]{2}|))$');
    if m is null or m[1] = '0000' or m[2] not between '01' and '12' or m[3] not between '01' and '31'
      or m[4] > '23' or m[5] > '59' or m[6] > '59' or m[10] > '23' or ltrim(m[11], ':') > '59' then
      return null;
    end if;
    day := make_date(m[1]::integer, m[2]::integer, 1) + (m[3]::integer - 1);
    if extract(day from day) <> m[3]::integer then return null; end if;
    -- Digits beyond microseconds are cut off.
    utc := day + (m[4] || ':' || m[5] || ':' || m[6] || '.' || rpad(substr(m[7], 2, 6), 6, '0'))::time;
    if m[9] is not null then
      utc := utc - (m[9] || m[10] || ' hours')::interval
                 - (m[9] || coalesce(nullif(ltrim(m[11], ':'), ''), '0') || ' minutes')::interval;
      if utc < '0001-01-01' or utc >= '10000-01-01' then return null; end if;
    end if;
    return utc at time zone 'UTC';
end
$$;
comment on function reports.moment is
  'A time of the service, as canonicalTimestamp of src/core/contract/timestamp.ts reads it; null for anything else.';

-- An integer of JavaScript's safe range, the only ones that the mirror's columns hold; null for any other value.
create or replace function reports.whole(p_value jsonb) returns bigint
language sql immutable parallel safe as $$
  select case when jsonb_typeof(p_value) = 'number' and p_value::text ~ '^(-|)[0-9]{1,16}$'
                and p_value between '-9007199254740991' and '9007199254740991' then p_value::text::bigint end
$$;
