-- SPDX-License-Identifier: Apache-2.0
-- Sets the psql variable version: number of the last applied migration, 0 when :is_installed is false.
\if :is_installed
    select coalesce(max(version), 0) as version from agent.schema_version \gset
\else
    \set version 0
\endif
