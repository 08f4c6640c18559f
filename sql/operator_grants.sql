-- SPDX-License-Identifier: Apache-2.0
-- The privileges of operators: accounts and their deletions, API keys, invitations and the names of deployments, and
-- the functions for them, which are security invoker. Included by install.sql.
grant usage on schema agent to :"operator_role";
grant select on agent.region, agent.deployments, agent.account_limits, agent.schema_version to :"operator_role";
grant select, insert, update (closed_at) on agent.accounts to :"operator_role";
grant select, insert, update (expires_at, revoked_at) on agent.api_keys to :"operator_role";
grant select, insert, update (revoked_at, revoked_by) on agent.invitations to :"operator_role";
grant select, insert on agent.audit_log, agent.account_deletions to :"operator_role";
grant update (log_days, backup_days) on agent.account_deletions to :"operator_role";
grant execute on function :operator_functions to :"operator_role";
-- Functions that they call, and the checks of the version and the region.
grant execute on function agent.now, agent.built_in_account, agent.render_time, agent.render_account,
                          agent.render_api_key, agent.render_deletion, agent.render_invitation, agent.render_limit,
                          agent.render_operator, agent.add_api_key, agent.begin_account_deletion,
                          agent.check_actions, agent.check_key_limit, agent.describe_check, agent.end_account,
                          agent.end_api_key, agent.find_limit, agent.insert_account, agent.insert_api_key,
                          agent.lock_key_account, agent.read_api_keys, agent.record_audit, agent.replace_api_key,
                          agent.schema_version, agent.database_region
    to :"operator_role";
