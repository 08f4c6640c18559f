-- SPDX-License-Identifier: Apache-2.0
-- The tables whose rows agent.export_account returns, in its order: all but those which only say what is to be
-- executed, swept or copied. keys: the columns after deployment_id of the index that gives the order, which are unique
-- together with it; of an account's tables those after account_id.
-- Returns: a row for each.
-- Locks:   none.
create or replace function agent.list_exported_tables()
returns table (number integer, name text, is_of_deployment boolean, keys text[])
language sql immutable parallel safe security invoker
set search_path = ''
as $function$
    select x.number, x.name, x.of_deployment, string_to_array(x.keys, ' ')
      from (values
            (1, 'accounts', false, 'account_id'),
            (2, 'api_keys', false, 'key_id'),
            (3, 'audit_log', false, 'audit_id'),
            (4, 'deployments', false, 'deployment_id'),
            (5, 'graphs', true, 'graph_id'),
            (6, 'assistants', true, 'assistant_id'),
            (7, 'assistant_versions', true, 'assistant_id version'),
            (8, 'store_items', true, 'namespace key'),
            (9, 'threads', true, 'thread_id'),
            (10, 'runs', true, 'thread_id thread_seq'),
            (11, 'checkpoints', true, 'thread_id checkpoint_ns checkpoint_id'),
            (12, 'checkpoint_tasks', true, 'thread_id checkpoint_id task_id run_id'),
            (13, 'checkpoint_items', true, 'thread_id list_id position'),
            (14, 'checkpoint_snapshots', true, 'thread_id checkpoint_ns checkpoint_id'),
            (15, 'checkpoint_writes', true, 'thread_id checkpoint_ns checkpoint_id task_id idx run_seq'),
            (16, 'checkpoint_blobs', true, 'thread_id digest part'),
            (17, 'run_events', true, 'bucket run_id seq'),
            (18, 'usage_events', true, 'run_id')
           ) x (number, name, of_deployment, keys)
$function$;

comment on function agent.list_exported_tables() is 'The tables whose rows agent.export_account returns.';
