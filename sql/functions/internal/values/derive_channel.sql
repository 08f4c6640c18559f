-- SPDX-License-Identifier: Apache-2.0
-- One channel of a new checkpoint, as a difference from the same channel of its parent. The cost depends on what
-- the runner sent. The new elements are returned, so that those of a batch are inserted together.
-- p_parent: the channel in the parent; null for none. p_new: the channel as sent. p_is_tip: whether the parent's last
-- list ends with the parent's last element; null: read it. The rows of the parent must be stored, unless p_is_tip
-- is true and p_new keeps all of its elements.
-- Returns: channel; is_tip for the next checkpoint; added: the elements to be inserted, null for none. Raises an
--          error of class 22 when the runner refers to something that the parent does not have.
-- Locks:   the caller holds the thread.
create or replace function agent.derive_channel(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_parent agent.channel_value,
    p_new agent.channel_content,
    p_is_tip boolean,
    out channel agent.channel_value,
    out is_tip boolean,
    out added agent.stored_items
)
language plpgsql volatile security invoker
-- No SET clause: it is called for each channel, by functions that have them.
as $function$
declare
    c_short   constant integer := 128;
    v_parent  agent.channel_value := p_parent;
    v_keep    integer := p_new.keep;
    v_content text[] := p_new.content;
begin
    if p_new.kind = 'same' and p_parent.name is not null then
        channel := p_parent;
        channel.stored_from := null;
        is_tip := p_is_tip;
        return;
    elsif p_new.kind = 'value' then
        channel.name := p_new.name;
        channel.bytes := p_new.bytes;
        if p_new.bytes <= c_short and p_new.per_row is null then
            channel.content := v_content[1];
        elsif p_parent.length is null and p_parent.content is null and p_parent.bytes = p_new.bytes
            and v_content[1] = (
                select i.content
                  from agent.read_items(p_deployment_id, p_thread_id, p_parent.list_ids, p_parent.ends, 0) i)
        then
            channel.list_ids := p_parent.list_ids;
            channel.ends := p_parent.ends;
        else
            channel.list_ids := array[nextval('agent.checkpoint_list_seq')];
            channel.ends := '{1}';
            channel.stored_from := 0;
            added.length := 1;
            added.start_bytes := 0;
            added.per_row := 1;
        end if;
    elsif p_new.kind in ('array', 'list') and p_new.length is not null then
        if p_parent.length is null then
            v_parent := null;
            v_parent.length := 0;
            v_parent.bytes := 0;
        end if;
        v_parent.name := p_new.name;
        added.length := p_new.length;
        if p_new.kind = 'array' then
            v_keep := agent.count_common(p_deployment_id, p_thread_id, v_parent, p_new);
            added.length := p_new.length - v_keep;
            if cardinality(v_content) = p_new.length then
                v_content := v_content[v_keep + 1 :];
            elsif v_keep > 0 and added.length > 0 then
                v_content := array[agent.cut_elements(v_content[1], v_keep, null)];
            end if;
        elsif (v_keep between 0 and v_parent.length) is not true then
            raise exception using errcode = 'invalid_parameter_value',
                message = 'a list keeps elements that the parent does not have';
        end if;

        if added.length = 0 then
            added := null;
            channel := v_parent;
            channel.stored_from := null;
            is_tip := v_keep = v_parent.length and p_is_tip;
            if v_keep < v_parent.length then
                channel := agent.cut_channel(p_deployment_id, p_thread_id, v_parent, v_keep);
            end if;
            return;
        end if;
        if v_keep > 0 and v_keep = v_parent.length and coalesce(p_is_tip, (
            select i.position + i.elements = v_keep
              from agent.checkpoint_items i
             where i.deployment_id = p_deployment_id
               and i.thread_id = p_thread_id
               and i.list_id = v_parent.list_ids[cardinality(v_parent.list_ids)]
             order by i.deployment_id desc, i.thread_id desc, i.list_id desc, i.position desc
             limit 1))
        then
            channel := v_parent;
            channel.stored_from := v_keep;
        elsif v_keep = 0 then
            channel := (p_new.name, 0, 0, array[nextval('agent.checkpoint_list_seq')], array[0], 0, null);
        else
            channel := agent.fork_list(
                p_deployment_id, p_thread_id, v_parent, v_keep, added.length, p_new.per_row is not null);
        end if;
        is_tip := true;
        added.start_bytes := channel.bytes;
        added.per_row := coalesce(
            p_new.per_row, case when cardinality(v_content) = added.length then 1 else added.length end);
        channel.length := v_keep + added.length;
        channel.bytes := case when p_new.kind = 'array' then p_new.bytes else channel.bytes + p_new.bytes end;
        channel.ends[cardinality(channel.ends)] := channel.length;
    else
        raise exception using errcode = 'invalid_parameter_value',
            message = 'a channel is not in the notation of the protocol, or not in the parent';
    end if;

    if channel.stored_from is not null then
        added.deployment_id := p_deployment_id;
        added.thread_id := p_thread_id;
        added.list_id := channel.list_ids[cardinality(channel.list_ids)];
        added.first := coalesce(v_keep, 0);
        added.content := v_content;
        added.is_digests := p_new.per_row is not null;
    end if;
end
$function$;

comment on function agent.derive_channel(
    uuid, uuid, agent.channel_value, agent.channel_content, boolean) is
    'One channel of a new checkpoint, as a difference from that of its parent.';
