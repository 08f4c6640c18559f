-- SPDX-License-Identifier: Apache-2.0
-- The statement of agent.delete_account_rows that deletes the first rows of a table of a deployment: up to $2 of the
-- deployment $1, and no more than agent.deletion_bytes() together, each counted with its stored values, which are not
-- fetched, and 2,000 bytes; the first one whatever its length. p_name, p_keys, p_condition: see
-- agent.list_deleted_tables.
-- Returns: SQL with two columns: the number of rows that it found, and of those that it deleted.
-- Locks:   none.
create or replace function agent.compose_deletion(p_name text, p_keys text, p_condition text) returns text
language plpgsql stable security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_bytes text := (
        select coalesce(
                   string_agg(format('coalesce(pg_column_size(x.%I), 0)', a.attname), ' + ' order by a.attnum), '0')
          from pg_attribute a
         where a.attrelid = format('agent.%I', p_name)::regclass
           and a.attnum > 0
           and a.attlen = -1
           and not a.attisdropped);
begin
    return format(
        $$with found as materialized (
              select x.*, row_number() over () as pos
                from (select %1$s, (%2$s)::bigint as bytes
                        from agent.%3$I x
                       where x.deployment_id = $1 %4$s
                       order by %5$s
                       limit $2) x
          ),
          fit as materialized (
              select f.*
                from (select x.*, sum(x.bytes + 2000) over (order by x.pos) as together from found x) f
               where f.pos = 1
                  or f.together <= agent.deletion_bytes()
          ),
          gone as (
              delete from agent.%3$I t %6$s
              returning 1
          )
          select (select count(*) from found), (select count(*) from gone)$$,
        -- The rows of a table with partitions have no ctid that is unique.
        case p_name when 'run_events' then 'x.bucket, x.run_id, x.seq' else 'x.ctid as id' end,
        v_bytes, p_name, p_condition,
        case p_name when 'run_events' then 'x.deployment_id, ' else '' end || p_keys,
        case p_name
            -- A join could pass over the rows of the deployment for each.
            when 'run_events' then
                'where t.deployment_id = $1 and (t.bucket, t.run_id, t.seq) <= '
                '(select f.bucket, f.run_id, f.seq from fit f order by f.pos desc limit 1)'
            else 'where t.ctid = any (array(select f.id from fit f))'
        end);
end
$function$;

comment on function agent.compose_deletion(text, text, text) is
    'The statement that deletes the first rows of a table of a deployment.';
