-- SPDX-License-Identifier: Apache-2.0
-- The same for the records of a graph's library (t/bench/chats.pl --records): replaces functions of chats.sql. A turn
-- is a run with three snapshots, two writes and two messages of about 600 bytes, sent as blobs.
create function bench.digest(p_kind text, p_turn integer) returns uuid language sql immutable as $$
    select md5(p_kind || p_turn)::uuid
$$;

create function bench.blob(p_kind text, p_turn integer) returns json language sql immutable as $$
    select json_build_object('type', 'blob', 'digest', bench.digest(p_kind, p_turn), 'value_type', 'msgpack', 'base64',
                             replace(encode(convert_to(bench.message(p_kind, p_turn)::text, 'UTF8'), 'base64'), E'\n', ''))
$$;

create function bench.put(p_id uuid, p_parent uuid, p_step integer, p_channels json) returns json language sql immutable as $$
    select json_build_object('type', 'put', 'ns', '', 'checkpoint_id', p_id, 'parent', p_parent,
        'checkpoint', json_build_object('v', 4, 'id', p_id, 'ts', '2026-11-23T06:15:00.000000+00:00',
            'channel_versions', json_build_object('messages', lpad(p_step::text, 32, '0') || '.0.7283618273', '__start__',
                lpad(p_step::text, 32, '0') || '.0.7283618273', 'branch:to:agent', lpad(p_step::text, 32, '0') || '.0.7283618273'),
            'versions_seen', json_build_object('__input__', '{}'::json, '__start__', json_build_object('__start__',
                lpad(p_step::text, 32, '0') || '.0.7283618273'), 'agent', json_build_object('branch:to:agent',
                lpad(p_step::text, 32, '0') || '.0.7283618273')), 'updated_channels', '["messages"]'::json),
        'metadata', json_build_object('source', 'loop', 'step', p_step, 'parents', '{}'::json), 'channels', p_channels)
$$;

create function bench.reference(p_keep integer, variadic p_digests uuid[]) returns json language sql immutable as $$
    select json_build_object('list', json_build_object('keep', p_keep, 'items', p_digests))
$$;

create or replace function bench.batch(p_run uuid, p_parent uuid, p_turn integer, p_ends boolean) returns json language plpgsql as $$
declare
    v_keep  integer := 2 * (p_turn - 1);
    v_ids   uuid[] := array[bench.make_id(), bench.make_id(), bench.make_id()];
    v_ask   uuid := bench.digest('human', p_turn);
    v_reply uuid := bench.digest('ai', p_turn);
begin
    return (
        select json_agg((i.item::jsonb || jsonb_build_object('d', bench.deployment(), 'r', p_run, 'e', 1))::json order by i.pos)
          from unnest(array[
                   bench.blob('human', p_turn),
                   bench.put(v_ids[1], p_parent, 3 * p_turn, json_build_object('__start__', v_ask)
                       ::jsonb::json),
                   json_build_object('type', 'put_writes', 'ns', '', 'checkpoint_id', v_ids[1], 'task_id', v_ids[1], 'task_path',
                       '~__pregel_pull, __start__', 'writes', json_build_array(
                           json_build_array(0, 'messages', bench.reference(0, v_ask)), json_build_array(1, 'branch:to:agent', null))),
                   bench.put(v_ids[2], v_ids[1], 3 * p_turn + 1, json_build_object('messages', bench.reference(v_keep, v_ask),
                       '__start__', null, 'branch:to:agent', null)),
                   bench.blob('ai', p_turn),
                   json_build_object('type', 'put_writes', 'ns', '', 'checkpoint_id', v_ids[2], 'task_id', v_ids[2], 'task_path',
                       '~__pregel_pull, agent', 'writes', json_build_array(json_build_array(0, 'messages', bench.reference(0, v_reply)))),
                   bench.put(v_ids[3], v_ids[2], 3 * p_turn + 2, json_build_object('messages', bench.reference(v_keep + 1, v_reply))),
                   case when p_ends then json_build_object('type', 'end', 'status', 'success') end
               ]) with ordinality i (item, pos)
         where i.item is not null);
end
$$;

create or replace function bench.head(p_thread uuid) returns uuid language sql stable as $$
    select checkpoint_id from agent.checkpoint_snapshots where thread_id = p_thread and deployment_id = bench.deployment()
       and checkpoint_ns = '' order by checkpoint_id desc limit 1
$$;

create or replace function bench.count_bytes(p_thread uuid, p_run uuid, p_turn integer) returns bigint language sql stable as $$
    select (select sum(pg_column_size(s.*)) from agent.checkpoint_snapshots s where s.run_id = p_run)
           + (select sum(pg_column_size(w.*)) from agent.checkpoint_writes w where w.run_id = p_run)
           + (select sum(pg_column_size(b.*)) from agent.checkpoint_blobs b
               where b.deployment_id = bench.deployment() and b.thread_id = p_thread
                 and b.digest in (bench.digest('human', p_turn), bench.digest('ai', p_turn)))
           + (select sum(pg_column_size(i.*)) from agent.checkpoint_items i
               where i.deployment_id = bench.deployment() and i.thread_id = p_thread
                 and i.content like '%' || bench.digest('human', p_turn) || '%')
           + (select sum(pg_column_size(i.*)) from agent.checkpoint_items i
               where i.deployment_id = bench.deployment() and i.thread_id = p_thread
                 and i.content like '%' || bench.digest('ai', p_turn) || '%')
$$;

-- All parts of a snapshot, as a runner without it reads them; then all of its messages, a hundred at a time.
create procedure bench.read(p_thread uuid, p_turns integer) language plpgsql as $$
declare
    v_args   json := json_build_object('ns', '', 'checkpoint_id', bench.head(p_thread));
    v_cursor text;
    v_since  timestamptz;
begin
    for v_round in 1 .. 10
    loop
        v_since := clock_timestamp();
        v_cursor := null;
        loop
            select r.cursor into v_cursor
              from agent.read_checkpoint(bench.deployment(), p_thread, v_args, v_cursor, 1048576) r;
            exit when v_cursor is null;
        end loop;
        call bench.note('read', p_turns, v_since);
        v_since := clock_timestamp();
        for v_turn in 0 .. p_turns - 50 by 50
        loop
            v_args := json_build_object('digests', (
                select json_agg(bench.digest(k, t)) from generate_series(v_turn + 1, v_turn + 50) t, unnest('{human,ai}'::text[]) k));
            perform agent.read_blobs(bench.deployment(), p_thread, v_args, null, 1048576);
        end loop;
        call bench.note('blobs', p_turns, v_since);
        v_args := json_build_object('ns', '', 'checkpoint_id', bench.head(p_thread));
    end loop;
end
$$;
