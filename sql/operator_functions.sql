-- SPDX-License-Identifier: Apache-2.0
-- Sets the psql variable operator_functions: the functions of operators, which the role of a server may not call.
-- Names suffice: none of them has a second signature.
\set operator_functions 'agent.create_account, agent.list_accounts, agent.close_account, agent.get_region'
\set operator_functions :operator_functions ', agent.create_api_key, agent.list_api_keys, agent.revoke_api_key'
\set operator_functions :operator_functions ', agent.rotate_api_key, agent.create_invitation, agent.delete_account'
\set operator_functions :operator_functions ', agent.list_deletions, agent.list_invitations, agent.revoke_invitation'
