-- SPDX-License-Identifier: Apache-2.0
-- The record of an API key, without its digest. p_region: the region of this database, which its text names;
-- p_deployment: the name of its deployment, if it has one. The only definition of this record.
-- Returns: the record.
-- Locks:   none.
create or replace function agent.render_api_key(p_key agent.api_keys, p_region text, p_deployment text) returns json
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select json_build_object(
        'key_id', p_key.key_id,
        'region', p_region,
        'account_id', p_key.account_id,
        'kind', p_key.kind,
        'name', p_key.name,
        'user_id', p_key.user_id,
        'deployment_id', p_key.deployment_id,
        'deployment', p_deployment,
        'scopes', p_key.scopes,
        'created_at', agent.render_time(p_key.created_at),
        'expires_at', agent.render_time(p_key.expires_at),
        'revoked_at', agent.render_time(p_key.revoked_at),
        'last_used_at', agent.render_time(p_key.last_used_at))
$function$;

comment on function agent.render_api_key(agent.api_keys, text, text) is
    'The record of an API key, without its digest.';
