-- SPDX-License-Identifier: Apache-2.0
-- Undoes the last of :migrations up to :version, then includes itself until none is applied.
select max(m.name) as name, max(m.name) is not null as is_applied, left(max(m.name), 4)::integer - 1 as next
  from regexp_split_to_table(:'migrations', ' ') m (name)
 where left(m.name, 4)::integer <= :version \gset
\if :is_applied
    \echo agent: undo :name
    \ir :name.down.sql
    \set version :next
    \ir next_down.sql
\endif
