-- SPDX-License-Identifier: Apache-2.0
-- Applies the first migration after :version, then includes itself until :migrations has no further one.
select min(m.name) as name, min(m.name) is not null as is_missing, left(min(m.name), 4)::integer as next
  from regexp_split_to_table(:'migrations', ' ') m (name)
 where left(m.name, 4)::integer > :version \gset
\if :is_missing
    \echo agent: migration :name
    \ir :name.up.sql
    \set version :next
    \ir next_up.sql
\endif
