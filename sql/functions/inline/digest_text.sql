-- SPDX-License-Identifier: Apache-2.0
-- The key of a content-addressed value. 128 bits of SHA-256 fit a uuid, which halves the key in the index
-- and in each checkpoint; with MD5 the author of one message could forge the key of another.
-- Returns: the digest.
-- Locks:   none.
create or replace function agent.digest_text(p_text text) returns uuid
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select encode(substring(sha256(convert_to(p_text, 'UTF8')) from 1 for 16), 'hex')::uuid
$function$;

comment on function agent.digest_text(text) is 'First 128 bits of the SHA-256 of a text.';
