-- SPDX-License-Identifier: Apache-2.0
-- Sets the psql variable migrations: the names of all migrations, in order.
\set migrations 0001_create_accounts
\set migrations :migrations ' 0002_create_threads'
\set migrations :migrations ' 0003_create_runs'
\set migrations :migrations ' 0004_create_workers'
\set migrations :migrations ' 0005_create_row_types'
