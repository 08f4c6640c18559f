-- SPDX-License-Identifier: Apache-2.0
-- The first of some rows, as many as one transaction deletes: agent.deletion_bytes() together, each counted with 2,000
-- bytes more; the first one whatever its length. p_bytes: of each of p_rows.
-- Returns: rows, null for none.
-- Locks:   none.
create or replace function agent.fit_deletion(p_rows tid[], p_bytes bigint[]) returns tid[]
language plpgsql immutable parallel safe security invoker
set search_path = ''
as $function$
begin
    return (
        select array_agg(e.ctid order by e.pos)
          from (
                select r.ctid, r.pos, sum(r.bytes + 2000) over (order by r.pos) as bytes
                  from unnest(p_rows, p_bytes) with ordinality r (ctid, bytes, pos)
               ) e
         where e.pos = 1
            or e.bytes <= agent.deletion_bytes());
end
$function$;

comment on function agent.fit_deletion(tid[], bigint[]) is 'The rows that one transaction deletes.';
