-- SPDX-License-Identifier: Apache-2.0
-- Checks the members of a put or put_writes that are stored as they are.
-- Returns: nothing. Raises an error of class 22 for one that is missing, is too long or has the wrong type, for
--          U+0000, and for a channel that is named twice.
-- Locks:   none.
create or replace function agent.check_record(p_record agent.batch_record) returns void
language plpgsql immutable security invoker
set search_path = ''
as $function$
declare
    c_ns_bytes      constant integer := 2048;
    c_path_bytes    constant integer := 1024;
    c_task_id_bytes constant integer := 128;
    c_tuple_bytes   constant integer := 1048576;
    v_checkpoint    jsonb := p_record.checkpoint;
    v_is_right      boolean;
begin
    if p_record.type = 'put' then
        -- The conversions have found U+0000 and numbers that no database stores.
        v_is_right := jsonb_typeof(v_checkpoint) = 'object'
            and json_typeof(p_record.metadata) = 'object'
            and json_typeof(p_record.channels) = 'object'
            and octet_length(p_record.checkpoint::text) <= c_tuple_bytes
            and octet_length(p_record.metadata::text) <= c_tuple_bytes
            and p_record.parent is distinct from p_record.checkpoint_id
            and (select count(*) = count(distinct c.name) from json_object_keys(p_record.channels) c (name));
    else
        v_is_right := octet_length(p_record.task_id) between 1 and c_task_id_bytes
            and octet_length(coalesce(p_record.task_path, '')) <= c_path_bytes
            and json_typeof(p_record.writes) = 'array';
    end if;
    -- They are read together, in one part; numbers of the metadata are stored without exponents.
    if v_is_right and p_record.type = 'put' then
        v_is_right := octet_length(p_record.checkpoint::text) + octet_length(p_record.metadata::jsonb::text)
            <= c_tuple_bytes;
    end if;
    -- Keys: an index has no room for long ones.
    if (v_is_right and p_record.checkpoint_id is not null and octet_length(p_record.checkpoint_ns) <= c_ns_bytes)
        is not true
    then
        raise exception using errcode = 'invalid_parameter_value', message = 'a record is not one of the protocol';
    end if;
end
$function$;

comment on function agent.check_record(agent.batch_record) is 'Checks the members of a put or put_writes.';
