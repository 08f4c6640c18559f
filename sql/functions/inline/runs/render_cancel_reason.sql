-- SPDX-License-Identifier: Apache-2.0
-- Why a client stopped a run, for its record. p_reason: the client's text, null for none; "taken" is the SDKs' word for
-- a run whose input the client gives to another one, and they expect a text that begins with "taken:".
-- Returns: the text.
-- Locks:   none.
create or replace function agent.render_cancel_reason(p_reason text) returns text
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select case
               when p_reason is null then 'api: a request cancelled the run'
               when p_reason = 'taken' then 'taken: its input was given to another run'
               else p_reason
           end
$function$;

comment on function agent.render_cancel_reason(text) is 'Why a client stopped a run, for its record.';
