-- SPDX-License-Identifier: Apache-2.0
-- Checks the psql variable region: the first installation writes it into the database (migration 0001), and no
-- later one changes it. Included by install.sql before the migrations.
select set_config('agent.install_region', :'region', true) is null as set \gset

do $$
begin
    if current_setting('agent.install_region') !~ '^[a-z][a-z0-9-]{0,15}$' then
        raise exception 'agent: "%" is not the name of a region', current_setting('agent.install_region')
            using hint = 'Expected from 1 to 16 small letters, digits and "-", a letter first, such as eu.';
    end if;
end
$$;

\if :is_installed
do $$
declare
    v_region text := (select r.region from agent.region r);
begin
    if v_region <> current_setting('agent.install_region') then
        raise exception 'agent: this database belongs to region %, not to %', v_region,
            current_setting('agent.install_region')
            using hint = 'The region of a database never changes: its data stays there. Install into another database.';
    end if;
end
$$;
\endif
