-- SPDX-License-Identifier: Apache-2.0
-- One channel of a new checkpoint, as a difference from the same channel of its parent. The cost depends on what
-- the runner sent. The new elements are returned, so that those of a batch are inserted together.
-- p_parent: the channel in the parent; null for none. p_new: the channel as sent. p_is_tip: whether the parent's last
-- list ends with the parent's last element; null: read it. The rows of the parent must be stored, unless p_is_tip
-- is true and p_new keeps all of its elements. p_may_copy: how many bytes may be copied, as agent.fork_list counts.
-- Returns: channel; is_tip for the next checkpoint; added: the elements to be inserted, null for none; may_copy: what
--          remains of p_may_copy. Raises an error of class 22 when the runner refers to something that the parent does
--          not have.
-- Locks:   the caller holds the thread.
create or replace function agent.derive_channel(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_parent agent.channel_value,
    p_new agent.channel_content,
    p_is_tip boolean,
    p_may_copy bigint,
    out channel agent.channel_value,
    out is_tip boolean,
    out added agent.stored_items,
    out may_copy bigint
)
language plpgsql volatile security invoker
-- No SET clause: it is called for each channel, by functions that have them.
as $function$
declare
    c_short    constant integer := 128;
    v_parent   agent.channel_value := p_parent;
    v_keep     integer := p_new.keep;
    v_content  text[] := p_new.content;
    v_elements integer[] := p_new.elements;
    v_added    integer := p_new.length;
    v_fork     record;
begin
    may_copy := p_may_copy;
    if p_new.kind = 'same' and p_parent.name is not null then
        channel := p_parent;
        channel.stored_from := null;
        is_tip := p_is_tip;
        return;
    elsif p_new.kind = 'value' then
        channel.name := p_new.name;
        channel.bytes := p_new.bytes;
        if p_new.bytes <= c_short and not p_new.is_digests then
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
            added.start_bytes := 0;
        end if;
    elsif p_new.kind in ('array', 'list') and p_new.length is not null then
        if p_parent.length is null then
            v_parent := null;
            v_parent.length := 0;
            v_parent.bytes := 0;
        end if;
        v_parent.name := p_new.name;
        if p_new.kind = 'array' then
            v_keep := agent.count_common(p_deployment_id, p_thread_id, v_parent, p_new);
            v_added := p_new.length - v_keep;
            if v_keep > 0 and v_added > 0 then
                select s.content, s.elements into v_content, v_elements
                  from agent.skip_elements(v_content, v_elements, v_keep) s;
            end if;
        elsif (v_keep between 0 and v_parent.length) is not true then
            raise exception using errcode = 'invalid_parameter_value',
                message = 'a list keeps elements that the parent does not have';
        end if;

        if v_added = 0 then
            channel := v_parent;
            channel.stored_from := null;
            is_tip := v_keep = v_parent.length and p_is_tip;
            if v_keep < v_parent.length then
                channel := agent.cut_channel(p_deployment_id, p_thread_id, v_parent, v_keep);
            end if;
            return;
        end if;
        if v_keep > 0 and v_keep = v_parent.length and coalesce(p_is_tip, agent.has_end(
            p_deployment_id, p_thread_id, v_parent.list_ids[cardinality(v_parent.list_ids)], v_keep))
        then
            channel := v_parent;
            channel.stored_from := v_keep;
        elsif v_keep = 0 then
            channel := (p_new.name, 0, 0, array[nextval('agent.checkpoint_list_seq')], array[0], 0, null);
        else
            v_fork := agent.fork_list(
                p_deployment_id, p_thread_id, v_parent, v_keep,
                (select sum(octet_length(c) + 65) from unnest(v_content) c), p_new.is_digests, p_may_copy);
            channel := v_fork.channel;
            may_copy := p_may_copy - v_fork.copied;
            added.first := channel.stored_from;
            added.start_bytes := v_fork.start_bytes;
            v_elements := v_fork.elements || coalesce(v_elements, array_fill(1, array[cardinality(v_content)]));
            v_content := v_fork.content || v_content;
        end if;
        is_tip := true;
        added.first := coalesce(added.first, v_keep);
        added.start_bytes := coalesce(added.start_bytes, channel.bytes);
        channel.length := v_keep + v_added;
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
        added.first := coalesce(added.first, 0);
        added.content := v_content;
        added.elements := v_elements;
        added.is_digests := p_new.is_digests;
    end if;
end
$function$;

comment on function agent.derive_channel(
    uuid, uuid, agent.channel_value, agent.channel_content, boolean, bigint) is
    'One channel of a new checkpoint, as a difference from that of its parent.';
