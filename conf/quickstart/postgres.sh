#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A private PostgreSQL cluster in one directory. It listens only on a unix
# socket in that directory (PGHOST=DIR). The quick start, the tests and the
# benchmarks use it; it does not affect other clusters of the machine.
#   postgres.sh start DIR             create the cluster if missing, start it
#   postgres.sh database DIR [NAME]   create a database (agent) if missing,
#                                     upgrade its schema
#   postgres.sh stop DIR [smart|fast|immediate]
#   postgres.sh status DIR            exit 0 while it runs
#   postgres.sh owner                 print the user of the cluster
# SERVER_USER: another user who may connect, as role agent (httpd's children).
# REGION: that of a new database; it never changes. By default `local`.
# CLUSTER_OPTIONS is added to the server's command line.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# The user of the cluster: PostgreSQL refuses to run as root. Debian's package
# creates postgres.
owner() { if is_root; then say postgres; else id -un; fi; }

# From /, because that user may not be able to enter the current folder.
tool() {
    local program=$BIN_DIR/$1
    shift
    (cd / && run_as "$(owner)" "$program" "$@")
}

# sockaddr_un holds 108 bytes; PostgreSQL adds its own file name.
check_socket_path() {
    [ "${#DIR}" -le 90 ] ||
        die "The path $DIR is too long for a unix socket (90 characters)."
}

# Peer authentication: no passwords. Role postgres installs the schema, role
# agent is that of the server, and role operator, which httpd's user cannot be,
# manages accounts and keys (agentctl); agent_owner owns the schema and cannot
# log in.
write_access_rules() {
    local data=$DIR/data user
    say "local all all peer map=agent" >"$data/pg_hba.conf"
    {
        for user in "$(owner)" "$(id -un)"; do
            say "agent $user postgres"
            say "agent $user agent"
            say "agent $user operator"
        done
        [ -z "${SERVER_USER-}" ] || say "agent $SERVER_USER agent"
    } | sort -u >"$data/pg_ident.conf"
}

make_cluster() {
    mkdir -p "$DIR"
    chmod 755 "$DIR"
    ! is_root || chown postgres "$DIR"
    tool initdb --pgdata="$DIR/data" --username=postgres --auth=peer \
        --encoding=UTF8 --locale=C.UTF-8 --no-sync >"$DIR/initdb.log"
    write_access_rules
}

# as_admin DATABASE ARGUMENT...: psql as superuser
as_admin() {
    local database=$1
    shift
    "$BIN_DIR/psql" -X -q -v ON_ERROR_STOP=1 "$@" "host=$DIR user=postgres dbname=$database"
}

exists() { [ "$(as_admin postgres -Atc "select count(*) from $1")" != 0 ]; }

make_database() {
    local role
    for role in agent operator; do
        exists "pg_roles where rolname = '$role'" ||
            as_admin postgres -c "create role $role login"
    done
    exists "pg_database where datname = '$1'" ||
        as_admin postgres -c "create database $1"
    as_admin "$1" -v app_role=agent ${REGION:+-v region="$REGION"} -f "$ROOT/sql/install.sql"
    as_admin "$1" -c "grant agent_operator to operator"
}

start() {
    check_socket_path
    [ -e "$DIR/data/PG_VERSION" ] || make_cluster
    is_running || detached "$ROOT/conf/quickstart/postgres.sh" run-server "$DIR"
}

run_server() {
    tool pg_ctl start -w -s -D "$DIR/data" -l "$DIR/postgres.log" \
        -o "-c listen_addresses= -c unix_socket_directories=$DIR ${CLUSTER_OPTIONS-}"
}

stop() {
    ! is_running || tool pg_ctl stop -w -s -D "$DIR/data" -m "$1"
}

is_running() { tool pg_ctl status -s -D "$DIR/data" >/dev/null 2>&1; }

DIR=${2-}
BIN_DIR=$(pg_config --bindir)
case "${1-}" in
start) start ;;
run-server) run_server ;;
database) make_database "${3-agent}" ;;
stop) stop "${3-fast}" ;;
status) is_running ;;
owner) owner ;;
*) die "usage: postgres.sh start|database|stop|status DIR, or owner" ;;
esac
