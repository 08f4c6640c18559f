-- SPDX-License-Identifier: Apache-2.0
-- The key of a content-addressed value. 128 bits of SHA-256 fit a uuid, half as wide
-- in the index and in each checkpoint; MD5 would let the author of one message forge another's key.
-- Returns: the digest.
-- Locks:   none.
create or replace function agent.digest_text(p_text text) returns uuid
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select encode(substring(sha256(convert_to(p_text, 'UTF8')) from 1 for 16), 'hex')::uuid
$function$;

comment on function agent.digest_text(text) is 'First 128 bits of the SHA-256 of a text.';
