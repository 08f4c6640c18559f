-- SPDX-License-Identifier: Apache-2.0
-- Makes this session wait for a concurrent upgrade or removal, by a lock that only the owner of the schema and
-- superusers can take: any role that connects could hold an advisory lock. Included by install.sql and
-- uninstall.sql after verify.sql.
\if :is_installed
    lock table agent.schema_version in share row exclusive mode;
\endif
