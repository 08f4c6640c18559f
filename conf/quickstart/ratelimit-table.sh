#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints a table of limits as httpd loads it: ratelimit-table.sh FILE
set -euo pipefail
cd "$(dirname "$0")/../.."
. conf/quickstart/lib.sh
. conf/quickstart/server.sh

if [ ! -r "${1-}" ]; then
    die "ratelimit-table: expected a readable file of RateLimitRule lines, got '${1-}'"
fi
RUN_DIR=$(mktemp -d)
trap 'rm -rf "$RUN_DIR"' EXIT
cat >"$RUN_DIR/httpd.conf" <<CONF
ServerRoot "$RUN_DIR"
ServerName localhost
Listen 127.0.0.1:9
ErrorLog "$RUN_DIR/error_log"
<IfModule !mpm_event_module>
    LoadModule mpm_event_module "$(apxs_value LIBEXECDIR)/mod_mpm_event.so"
</IfModule>
LoadModule authz_core_module "$(apxs_value LIBEXECDIR)/mod_authz_core.so"
LoadModule ratelimit_regional_module "$PWD/.build/release/mod_ratelimit_regional.so"
Include "$(readlink -f "$1")"
RateLimitEngine Off
CONF
# Without the lines that httpd -t adds to the table.
"$(apxs_value SBINDIR)/$(apxs_value PROGNAME)" -f "$RUN_DIR/httpd.conf" -t -D DUMP_RATELIMIT \
    2> >(grep -v '^Syntax OK$' >&2)
