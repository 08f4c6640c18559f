-- SPDX-License-Identifier: Apache-2.0
-- Creates the functions of this folder.
\ir accounts/close_account.sql
\ir accounts/create_account.sql
\ir accounts/create_api_key.sql
\ir accounts/create_invitation.sql
\ir accounts/delete_account.sql
\ir accounts/get_region.sql
\ir accounts/list_accounts.sql
\ir accounts/list_api_keys.sql
\ir accounts/list_deletions.sql
\ir accounts/list_invitations.sql
\ir accounts/revoke_api_key.sql
\ir accounts/revoke_invitation.sql
\ir accounts/rotate_api_key.sql
