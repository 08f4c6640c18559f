-- SPDX-License-Identifier: Apache-2.0
-- Whether a state is a single value without a name, as in the functional API or with a root channel. Its only channel
-- has the name below; the API shows the value alone.
-- Returns: false or null for any other state.
-- Locks:   none.
create or replace function agent.has_bare_value(p_channels agent.channel_value[]) returns boolean
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select cardinality(p_channels) = 1 and (p_channels[1]).name = '__root__'
$function$;

comment on function agent.has_bare_value(agent.channel_value[]) is 'Whether a state is one value without a name.';
