-- SPDX-License-Identifier: Apache-2.0
-- The functions of t/bench/chats.pl: chats of many turns through the functions of the schema, timed in the server, so
-- that no client takes part. A turn is a run with three checkpoints, three events and two messages of about 600 bytes.
create schema bench;
create sequence bench.ids;
create table bench.figures (name text, chat integer, ms double precision, cpu_ms double precision, bytes bigint);

-- Milliseconds of processor time of this backend so far, from the kernel's scheduler.
create function bench.cpu_ms() returns double precision language sql volatile as $$
    select split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::double precision / 1e6
$$;

-- Ascends, as the ids of a runner do.
create function bench.make_id() returns uuid language sql volatile as $$
    select regexp_replace(lpad(to_hex(nextval('bench.ids')), 12, '0'), '^(.{8})(.{4})$', '\1-\2-7000-8000-000000000000')::uuid
$$;

create function bench.deployment() returns uuid language sql immutable as $$
    select '00000000-0000-0000-0000-000000000001'::uuid
$$;

create function bench.message(p_type text, p_turn integer) returns json language sql immutable as $$
    select json_build_object('type', p_type, 'id', p_turn, 'content', repeat(md5(p_type || p_turn), 15), 'name', null,
                             'additional_kwargs', '{}'::json, 'response_metadata', '{}'::json, 'example', false)
$$;

create function bench.list(p_keep integer, variadic p_items json[]) returns json language sql immutable as $$
    select json_build_object('$list', json_build_object('keep', p_keep, 'items', p_items))
$$;

-- The items of a batch for one turn; without its end when p_ends is false.
create function bench.batch(p_run uuid, p_parent uuid, p_turn integer, p_ends boolean) returns json language plpgsql as $$
declare
    v_keep  integer := 2 * (p_turn - 1);
    v_ids   uuid[] := array[bench.make_id(), bench.make_id(), bench.make_id()];
    v_ask   json := bench.message('human', p_turn);
    v_reply json := bench.message('ai', p_turn);
begin
    return (
        select json_agg((i.item::jsonb || jsonb_build_object('d', bench.deployment(), 'r', p_run, 'e', 1))::json order by i.pos)
          from unnest(array[
                   json_build_object('type', 'checkpoint', 'checkpoint_id', v_ids[1], 'parent', p_parent,
                       'values', json_build_object('messages', bench.list(v_keep, variadic '{}')), 'next', '["__start__"]'::json,
                       'metadata', json_build_object('source', 'input', 'step', 3 * p_turn, 'writes', v_ask)),
                   json_build_object('type', 'event', 's', 0, 'event', 'values', 'checkpoint_id', v_ids[1]),
                   json_build_object('type', 'checkpoint', 'checkpoint_id', v_ids[2], 'parent', v_ids[1],
                       'values', json_build_object('messages', bench.list(v_keep, v_ask)), 'next', '["agent"]'::json,
                       'metadata', json_build_object('source', 'loop', 'step', 3 * p_turn + 1)),
                   json_build_object('type', 'event', 's', 1, 'event', 'values', 'checkpoint_id', v_ids[2]),
                   json_build_object('type', 'checkpoint', 'checkpoint_id', v_ids[3], 'parent', v_ids[2],
                       'values', json_build_object('messages', bench.list(v_keep + 1, v_reply)), 'next', '[]'::json,
                       'metadata', json_build_object('source', 'loop', 'step', 3 * p_turn + 2, 'writes', v_reply)),
                   json_build_object('type', 'event', 's', 2, 'event', 'values', 'checkpoint_id', v_ids[3]),
                   case when p_ends then json_build_object('type', 'end', 'status', 'success') end
               ]) with ordinality i (item, pos)
         where i.item is not null);
end
$$;

-- A run that is leased.
create function bench.start(p_worker bigint, p_thread uuid) returns uuid language plpgsql as $$
declare
    v_run uuid := bench.make_id();
begin
    perform agent.create_run(bench.deployment(), p_thread, v_run, 'fe096781-5601-53d2-b2f6-0d3403f7e9ca', 'agent', '{agent}',
                             'enqueue', null, null, null, '{}');
    perform agent.claim_runs(p_worker, array[bench.deployment()], '{agent}', '{0}', '{1}', '{1}', '{1}', 1, 1);
    return v_run;
end
$$;

create function bench.head(p_thread uuid) returns uuid language sql stable as $$
    select head_checkpoint_id from agent.threads where thread_id = p_thread
$$;

-- Bytes of the rows that a run stored.
create function bench.count_bytes(p_thread uuid, p_run uuid, p_turn integer) returns bigint language sql stable as $$
    select (select sum(pg_column_size(c.*)) from agent.checkpoints c where c.run_id = p_run)
           + (select sum(pg_column_size(e.*)) from agent.run_events e where e.run_id = p_run)
           + (select sum(pg_column_size(i.*)) from agent.checkpoint_items i
               where i.thread_id = p_thread and i.position >= 2 * (p_turn - 1))
$$;

create procedure bench.note(p_name text, p_chat integer, p_since timestamptz) language sql as $$
    insert into bench.figures (name, chat, ms)
    values (p_name, p_chat, extract(epoch from clock_timestamp() - p_since) * 1000)
$$;

-- A chat of p_turns. Each figure of saving is of ten turns: 6 to 15, and the last ten.
create procedure bench.chat(p_worker bigint, p_thread uuid, p_turns integer) language plpgsql as $$
declare
    v_run   uuid;
    v_batch public.batch;
    v_since timestamptz;
    v_name  text;
begin
    perform agent.create_thread(bench.deployment(), p_thread, 'raise', '{}');
    for v_turn in 1 .. p_turns
    loop
        v_run := bench.start(p_worker, p_thread);
        v_batch := public.make_batch(bench.batch(v_run, bench.head(p_thread), v_turn, true));
        commit;
        v_since := clock_timestamp();
        perform public.save_columns(p_worker, v_batch);
        v_name := case when v_turn between 6 and 15 then 'tenth' when v_turn > p_turns - 10 then 'last' end;
        if v_name is not null then
            call bench.note(v_name, p_turns, v_since);
            insert into bench.figures (name, chat, bytes)
            values (v_name, p_turns, bench.count_bytes(p_thread, v_run, v_turn));
        end if;
        commit;
    end loop;
end
$$;

-- The statements that read a state part by part, for a runner without it.
create function bench.make_reads(p_thread uuid) returns setof text language plpgsql as $$
declare
    v_read   text;
    v_cursor text;
begin
    loop
        v_read := format('select code, body, cursor from agent.read_state(%L, %L, %L, %L, 1048576)',
                         bench.deployment(), p_thread, bench.head(p_thread), v_cursor);
        return next v_read;
        execute format('select max(r.cursor) from (%s) r', v_read) into v_cursor;
        exit when v_cursor is null;
    end loop;
end
$$;

-- The select of the rows that have the state, in their order.
create function bench.make_select(p_thread uuid) returns text language sql as $$
    select format('select content from agent.checkpoint_items where deployment_id = %L and thread_id = %L and list_id = any (%L)'
                  ' order by deployment_id, thread_id, list_id, position', bench.deployment(), p_thread, (c.channels[1]).list_ids)
      from agent.checkpoints c
     where c.checkpoint_id = bench.head(p_thread)
$$;

-- A run that is rolled back, then the deletions of runs at the beginning, in the middle and at the end.
create procedure bench.undo(p_worker bigint, p_thread uuid, p_turns integer) language plpgsql as $$
declare
    v_run   uuid;
    v_batch public.batch;
    v_since timestamptz;
begin
    for v_round in 1 .. 5
    loop
        v_run := bench.start(p_worker, p_thread);
        perform public.save_items(p_worker, bench.batch(v_run, bench.head(p_thread), p_turns + 1, false));
        perform agent.cancel_run(bench.deployment(), p_thread, v_run, 'rollback');
        v_batch := public.make_batch(json_build_array(json_build_object(
            'type', 'end', 'status', 'success', 'd', bench.deployment(), 'r', v_run, 'e', 1)));
        commit;
        v_since := clock_timestamp();
        perform public.save_columns(p_worker, v_batch);
        call bench.note('rollback', p_turns, v_since);
        commit;
    end loop;
    for v_run in
        select r.run_id from agent.runs r
         where r.thread_id = p_thread and r.thread_seq in (2, p_turns / 2, p_turns / 2 + 1, p_turns - 1, p_turns)
    loop
        v_since := clock_timestamp();
        perform agent.delete_run(bench.deployment(), p_thread, v_run);
        call bench.note('delete run', p_turns, v_since);
        commit;
    end loop;
end
$$;

-- The deletion of the chat, piece by piece.
-- The copy or the deletion (p_name: copy or delete) of a chat, piece by piece.
create procedure bench.repeat(p_name text, p_thread uuid, p_turns integer) language plpgsql as $$
declare
    v_copy_id uuid := bench.make_id();
    v_row     record;
    v_since   timestamptz;
    v_cpu     double precision;
    v_pieces  integer := 0;
    v_first   timestamptz := clock_timestamp();
begin
    loop
        v_cpu := bench.cpu_ms();
        v_since := clock_timestamp();
        if p_name = 'copy' then
            v_row := agent.copy_thread(bench.deployment(), p_thread, v_copy_id, v_pieces > 0, null);
        else
            v_row := agent.delete_thread(bench.deployment(), p_thread, v_pieces > 0);
        end if;
        call bench.note(p_name || ' piece', p_turns, v_since);
        insert into bench.figures (name, chat, cpu_ms) values (p_name || ' piece', p_turns, bench.cpu_ms() - v_cpu);
        commit;
        if v_row.code <> 'ok' then
            raise exception '%: %', p_name, v_row.code;
        end if;
        v_pieces := v_pieces + 1;
        exit when v_row.body is null;
    end loop;
    call bench.note(p_name || ' chat', p_turns, v_first);
end
$$;
