-- SPDX-License-Identifier: Apache-2.0
-- Answers store (worker/README.md): reads and writes items of the store of a run's deployment. The reads of a
-- request precede its puts, which are in the transaction of the last part; of those of one item the last one counts.
-- p_args: {"ops": 1 to 1,000 objects}.
-- p_ttl: as of agent.put_items.
-- p_cursor: OP.COUNT: the operation at which to continue, and how many items its search has returned.
-- Returns: ok with {"results": [...]}: the next results; a search that continues has "more": true.
--          run_taken: there are puts, and the worker does not hold the lease. invalid_cursor. too_many_items: see
--          agent.find_items and agent.find_namespaces.
-- Bound:   p_max_bytes, of which a search takes a part for what it examines, and one item or list of namespaces.
-- Locks:   with puts the queue row, then the items in the order of namespace and key; items whose time to live begins
--          again.
create or replace function agent.use_store(
    p_worker_id bigint,
    p_deployment_id uuid,
    p_run_id uuid,
    p_epoch integer,
    p_args json,
    p_cursor text,
    p_max_bytes integer,
    p_ttl interval default null,
    out code text,
    out body text,
    out cursor text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off
as $function$
declare
    c_ops     constant integer := 1000;
    v_ops     json := p_args -> 'ops';
    v_puts    json;
    v_op      record;
    v_read    record;
    v_from    integer := 0;
    v_skip    integer := 0;
    v_left    integer := p_max_bytes;
    v_texts   text[] := '{}';
    v_refresh text[] := '{}';
begin
    if (json_typeof(v_ops) = 'array' and json_array_length(v_ops) between 1 and c_ops) is not true then
        raise exception using errcode = 'invalid_parameter_value', message = 'a request has wrong operations';
    end if;
    if p_cursor is not null then
        if p_cursor !~ '^[0-9]{1,4}\.[0-9]{1,4}$' then
            code := 'invalid_cursor';
            return;
        end if;
        v_from := split_part(p_cursor, '.', 1);
        v_skip := split_part(p_cursor, '.', 2);
    end if;
    select json_agg(x.op order by x.pos) into v_puts
      from json_array_elements(v_ops) with ordinality x (op, pos)
     where x.op ->> 'op' = 'put';
    if v_puts is not null
        and agent.fence_leases(
            p_worker_id, array[agent.make_leased_run(p_deployment_id, p_run_id, p_epoch, false)]) is null
    then
        code := 'run_taken';
        return;
    end if;

    for v_op in
        select x.op, x.op ->> 'op' as name, x.pos - 1 as pos
          from json_array_elements(v_ops) with ordinality x (op, pos)
         where x.pos > v_from
         order by x.pos
    loop
        if v_op.name = 'put' then
            v_texts := v_texts || 'null'::text;
            continue;
        end if;
        if v_left <= 0 then
            cursor := v_op.pos || '.' || v_skip;
            exit;
        end if;
        select r.body, r.refresh, r.cost, r.taken into v_read
          from agent.read_store(p_deployment_id, v_op.name, v_op.op, v_skip, v_left) r;
        if v_read.body is null then
            code := 'too_many_items';
            return;
        end if;
        v_texts := v_texts || v_read.body;
        v_refresh := v_refresh || v_read.refresh;
        v_left := v_left - v_read.cost;
        if v_read.taken is not null then
            cursor := v_op.pos || '.' || v_read.taken;
            exit;
        end if;
        v_skip := 0;
    end loop;

    if cursor is null and v_puts is not null then
        perform agent.put_items(p_deployment_id, v_puts, p_ttl);
    end if;
    if cardinality(v_refresh) > 0 then
        perform agent.refresh_items(p_deployment_id, ('[' || array_to_string(v_refresh, ',') || ']')::json);
    end if;
    code := 'ok';
    body := '{"results":[' || array_to_string(v_texts, ',') || ']}';
end
$function$;

comment on function agent.use_store(bigint, uuid, uuid, integer, json, text, integer, interval) is
    'Reads and writes items of the store for a run.';
