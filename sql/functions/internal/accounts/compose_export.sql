-- SPDX-License-Identifier: Apache-2.0
-- The query of agent.export_account for the rows of a table after a key, of the deployment or the account $1. p_keys:
-- as in agent.list_exported_tables. p_after: the key as texts; null: from the first row on.
-- The order needs the settings of agent.export_account: each table is read by its index, from the key on.
-- Returns: SQL with two columns: the line of a row, and its key as texts. Each row that is examined is returned, so
--          that the caller can count them: of `runs` a thread without further runs is one, with a line that is null.
-- Locks:   none.
create or replace function agent.compose_export(
    p_name text,
    p_keys text[],
    p_is_of_deployment boolean,
    p_after text[]
) returns text
language plpgsql immutable security invoker
set search_path = ''
as $function$
declare
    v_columns text := (select string_agg(format('t.%I', k.key), ', ' order by k.pos)
                         from unnest(p_keys) with ordinality k (key, pos));
    v_texts   text := case p_name
                          -- The thread is examined once more, without a run after that number.
                          when 'runs' then $$h.thread_id::text, coalesce(t.thread_seq, 9223372036854775807)::text$$
                          else (select string_agg(format('t.%I::text', k.key), ', ' order by k.pos)
                                  from unnest(p_keys) with ordinality k (key, pos))
                      end;
    v_after   text := (select string_agg(quote_literal(a.value), ', ' order by a.pos)
                         from unnest(p_after) with ordinality a (value, pos));
    v_row     text := case p_name
                          when 'accounts' then 'agent.render_account(t)'
                          -- Without its digest.
                          when 'api_keys' then $$agent.render_api_key(
                                   t, (select r.region from agent.region r),
                                   (select d.name from agent.deployments d where d.deployment_id = t.deployment_id))$$
                          else 'pg_catalog.row_to_json(t)'
                      end;
begin
    return format(
        -- Line ends of a member of type json are white space: in a string they are escaped.
        $$select %s pg_catalog.translate(pg_catalog.json_build_object('table', %L, 'row', %s)::text, E'\n\r', '  ')
                 || E'\n' %s,
                 array[%s]
            from %s
           order by %s$$,
        case when p_name = 'runs' then 'case when t.run_id is not null then' end,
        p_name, v_row,
        case when p_name = 'runs' then 'end' end,
        v_texts,
        case when p_name = 'runs' then agent.compose_runs_source(p_after)
             else format('agent.%I t where t.%I = $1%s', p_name,
                         case when p_is_of_deployment then 'deployment_id' else 'account_id' end,
                         case when p_after is not null then format(' and (%s) > (%s)', v_columns, v_after) end) end,
        case when p_name = 'runs' then 'h.thread_id' else v_columns end);
end
$function$;

comment on function agent.compose_export(text, text[], boolean, text[]) is
    'The query of agent.export_account for the rows of a table.';
