-- The discount of a coupon on a cycle's amount: `forever` covers every cycle, `once` the first, `repeating` the first
-- n. A percentage is computed exactly, rounded down and then capped, as the service documents it for the validation of
-- a coupon. A coupon that cannot be read gives no discount.
create or replace function reports.discount(p_coupon jsonb, p_amount bigint, p_cycle bigint) returns bigint
language plpgsql immutable parallel safe as $$
begin
    return case when case p_coupon->>'duration'
        when 'forever' then true
        when 'once' then p_cycle <= 1
        when 'repeating' then p_cycle <= reports.whole(p_coupon->'duration_in_cycles')
        else false end
      then least(greatest(coalesce(case
        when jsonb_typeof(p_coupon->'percentage') = 'number' then least(
          floor(p_amount * (p_coupon->>'percentage')::numeric / 100),
          coalesce(reports.whole(p_coupon->'max_discount_amount'), p_amount))
        else reports.whole(p_coupon->'amount') end, 0), 0), p_amount)::bigint
      else 0 end;
end
$$;

-- Whether a field of a subscription's state has its content: an amount in a currency, an interval, a number.
create or replace function reports.is_recurring_known(p_field text, p_value jsonb) returns boolean
language sql immutable parallel safe as $$
  select case p_field
      when 'plan' then reports.whole(p_value->'amount') is not null and jsonb_typeof(p_value->'currency') = 'string'
      when 'billing_cycle' then p_value->>'interval' in ('day', 'month')
        and reports.whole(p_value->'interval_count') is not null
      else reports.whole(p_value) is not null end is true
$$;

-- The amount of a cycle per month; null where the interval is not known. A month is a twelfth of 365.25 days.
create or replace function reports.monthly_amount(p_amount bigint, p_interval text, p_count bigint) returns bigint
language sql immutable parallel safe as $$
  select round(case p_interval when 'month' then p_amount::numeric / greatest(p_count, 1)
               when 'day' then p_amount * 365.25 / 12 / greatest(p_count, 1) end)::bigint
$$;
