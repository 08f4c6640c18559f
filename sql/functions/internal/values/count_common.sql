-- SPDX-License-Identifier: Apache-2.0
-- Compares a list that a runner sent whole with the parent's: as text when it may begin with all of the parent's
-- elements, else one by one. A beginning that both have takes as many bytes in both, so of the parent's elements no
-- more bytes than the new list has are read, and not more rows than it has elements.
-- p_parent: the channel in the parent, a list. p_new: the same channel as sent, an array.
-- Returns: the number of elements with which both begin, or a smaller one where rows of short elements differ; at most
--          the length of p_new. 0 when the parent's has many segments: the new one, stored whole, has one again.
-- Locks:   none.
create or replace function agent.count_common(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_parent agent.channel_value,
    p_new agent.channel_content
) returns integer
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    c_many constant integer := 32;
    v_text text;
begin
    if p_parent.length = 0 or p_new.length = 0 or cardinality(p_parent.list_ids) > c_many then
        return 0;
    end if;
    if p_new.length >= p_parent.length and p_new.bytes >= p_parent.bytes then
        select string_agg(i.content, ',') into v_text
          from agent.read_items(p_deployment_id, p_thread_id, p_parent.list_ids, p_parent.ends, 0) i;
        if starts_with(array_to_string(p_new.content, ',') || ',', v_text || ',') then
            return p_parent.length;
        end if;
    end if;
    if p_new.elements is not null then
        return 0;
    end if;
    return coalesce(
        (
            select d.pos - 1
              from (
                    select array_agg(
                               case when i.elements = 1 and i.end_bytes <= p_new.bytes then i.content end) as content
                      from agent.read_items(
                               p_deployment_id, p_thread_id, p_parent.list_ids, p_parent.ends, 0) i
                     where i.position < p_new.length
                   ) o
             cross join lateral unnest(o.content, p_new.content) with ordinality d (parent, new, pos)
             -- A row of several elements, or beyond the bytes of the new list, is null in the parent, as its end is.
             where d.parent is null
                or d.parent is distinct from d.new
             limit 1
        ), p_new.length);
end
$function$;

comment on function agent.count_common(uuid, uuid, agent.channel_value, agent.channel_content) is
    'The number of elements with which two lists begin.';
