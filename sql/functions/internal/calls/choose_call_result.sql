-- SPDX-License-Identifier: Apache-2.0
-- The result of a call that ends. p_call: its queue row; p_end: its end; p_checkpoint: the checkpoint that the call
-- has saved (agent.render_checkpoint), else null; p_is_whole: agent.is_saved_update; p_what: of a description.
-- Returns: the code and the text of the result: ok with the response; update_refused or call_refused with the error
--          of the graph; call_timeout, no_runner or call_failed when the server ended it.
-- Locks:   none.
create or replace function agent.choose_call_result(
    p_call agent.run_queue,
    p_end agent.run_end,
    p_checkpoint json,
    p_is_whole boolean,
    p_what text,
    out code text,
    out body text
)
language plpgsql stable security invoker
set search_path = ''
as $function$
declare
    c_message_chars constant integer := 2000;
    c_name_chars    constant integer := 128;
    v_word text := case
        when p_end.status in ('error', 'timeout') then coalesce(p_end.error ->> 'error', 'error')
    end;
begin
    if p_checkpoint is not null and (v_word is null or p_is_whole and p_end.is_failure) then
        code := 'ok';
        body := json_build_object(
            'checkpoint', p_checkpoint,
            'configurable', json_strip_nulls(p_checkpoint),
            'checkpoint_id', p_checkpoint -> 'checkpoint_id');
    elsif v_word is null and p_call.op <> 'update' and p_end.value is not null then
        code := 'ok';
        body := case
            when p_what = 'schemas' then agent.render_schemas(p_call.graph_id, p_end.value)::text
            else p_end.value::text
        end;
    elsif v_word is null then
        code := 'call_failed';
        body := 'The graph ended the call without a result.';
    elsif not p_end.is_failure then
        code := case when p_call.op = 'update' then 'update_refused' else 'call_refused' end;
        -- A runner chooses both texts.
        body := left(v_word, c_name_chars) || ': ' || left(coalesce(p_end.error ->> 'message', ''), c_message_chars);
    else
        code := case when v_word in ('call_timeout', 'no_runner') then v_word else 'call_failed' end;
        body := left(coalesce(p_end.error ->> 'message', ''), c_message_chars);
    end if;
end
$function$;

comment on function agent.choose_call_result(agent.run_queue, agent.run_end, json, boolean, text) is
    'The result of a call that ends.';
