-- SPDX-License-Identifier: Apache-2.0
-- The query of agent.measure_rows for the rows of a table of the deployment $1 after a key. p_keys: as in
-- agent.list_exported_tables. p_after: the key as texts, or the first of them; null: from the first row on. p_rows: the
-- most that it reads.
-- A row counts with its header and the lengths of its values as they are stored, which are not fetched; its entries in
-- indexes do not count. Nor do rows of copies of threads that are under way, which agent.measure_account adds.
-- The order needs the settings of agent.measure_rows.
-- Returns: SQL with three columns: the number of rows, their bytes, and the key of the last one when there are p_rows.
-- Locks:   none.
create or replace function agent.compose_measure(
    p_name text,
    p_keys text[],
    p_after text[],
    p_rows integer
) returns text
language plpgsql stable security invoker
set search_path = ''
as $function$
declare
    -- The header of a row, its pointer in the page and what aligns it.
    c_row_bytes constant integer := 32;
    v_columns   text := (select string_agg(format('t.%I', k.key), ', ' order by k.pos)
                           from unnest(p_keys) with ordinality k (key, pos));
    v_after     text := (select string_agg(quote_literal(a.value), ', ' order by a.pos)
                           from unnest(p_after) with ordinality a (value, pos));
    v_bytes     text := (
        select c_row_bytes + sum(a.attlen) filter (where a.attlen > 0) || coalesce(string_agg(
                   format(' + coalesce(pg_catalog.pg_column_size(t.%I), 0)', a.attname), '' order by a.attnum)
                   filter (where a.attlen < 0), '')
          from pg_catalog.pg_attribute a
         where a.attrelid = ('agent.' || quote_ident(p_name))::pg_catalog.regclass
           and a.attnum > 0
           and not a.attisdropped);
    v_from      text := format('agent.%I t where t.deployment_id = $1', p_name);
    v_order     text := v_columns;
    v_key       text := (select string_agg(format('t.%I::text', k.key), ', ' order by k.pos)
                           from unnest(p_keys) with ordinality k (key, pos));
begin
    if p_name = 'runs' then
        v_from := agent.compose_runs_source(p_after);
        v_bytes := format('case when t.run_id is null then 0 else %s end', v_bytes);
        v_order := 'h.thread_id';
        v_key := 'h.thread_id::text, coalesce(t.thread_seq, 9223372036854775807)::text';
    elsif p_after is not null then
        v_from := format('%s and (%s) > (%s)', v_from, (
            select string_agg(format('t.%I', k.key), ', ' order by k.pos)
              from unnest(p_keys) with ordinality k (key, pos)
             where k.pos <= cardinality(p_after)), v_after);
    end if;
    if p_name <> 'runs' and p_keys[1] = 'thread_id' then
        v_bytes := format(
            $$case
                when t.thread_id in (
                     select c.thread_id
                       from agent.thread_copies c
                      where c.deployment_id = $1)
                then 0
                else %s
            end$$, v_bytes);
    end if;
    return format(
        $$select count(*), coalesce(sum(x.bytes), 0)::bigint, max(x.key)::text[]
            from (select %1$s as bytes,
                         case when row_number() over (order by %2$s) = %3$s then array[%4$s]::text end as key
                    from %5$s
                   order by %2$s
                   limit %3$s) x$$,
        v_bytes, v_order, p_rows, v_key, v_from);
end
$function$;

comment on function agent.compose_measure(text, text[], text[], integer) is
    'The query of agent.measure_rows for the rows of a table.';
