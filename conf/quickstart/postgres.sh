#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A private PostgreSQL cluster in one directory: unix socket only, the socket
# in that directory, so PGHOST=DIR reaches it. The quick start, the tests and
# the benchmarks use it; a server of this machine is never touched.
#   postgres.sh start DIR     make it if needed, start it, database agent
#   postgres.sh schema DIR    bring the schema in that database up to date
#   postgres.sh stop DIR [smart|fast|immediate]
#   postgres.sh status DIR    exit 0 while it runs
#   postgres.sh owner         the user it runs as
# SERVER_USER names who else may connect, as role agent (httpd's children).
# CLUSTER_OPTIONS is added to the server's command line.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# PostgreSQL refuses to run as root; Debian's package makes this user.
owner() { if is_root; then say postgres; else id -un; fi; }

# From /, because that user may not enter the directory we are in.
tool() {
    local bin
    bin=$(pg_config --bindir)/$1
    shift
    (cd / && run_as "$(owner)" "$bin" "$@")
}

# sockaddr_un holds 108 bytes; PostgreSQL adds its own file name.
check_socket_path() {
    [ "${#1}" -le 90 ] ||
        die "The path $1 is too long for a unix socket (90 characters)."
}

# Who may be whom: peer authentication, so no password and no open door.
# Role postgres owns the schema, role agent is what a server connects as.
write_access_rules() {
    local data=$1 user
    say "local all all peer map=agent" >"$data/pg_hba.conf"
    {
        for user in "$(owner)" "$(id -un)"; do
            say "agent $user postgres"
            say "agent $user agent"
        done
        [ -z "${SERVER_USER-}" ] || say "agent $SERVER_USER agent"
    } | sort -u >"$data/pg_ident.conf"
}

make_cluster() {
    local dir=$1
    mkdir -p "$dir"
    chmod 755 "$dir"
    ! is_root || chown postgres "$dir"
    tool initdb --pgdata="$dir/data" --username=postgres --auth=peer \
        --encoding=UTF8 --locale=C.UTF-8 --no-sync >"$dir/initdb.log"
    write_access_rules "$dir/data"
}

make_database() {
    local psql=(psql -X -q -v ON_ERROR_STOP=1 "host=$1 user=postgres")
    local exists="select count(*) > 0 from pg_database where datname = 'agent'"
    [ "$("${psql[@]}" -Atc "$exists")" = f ] || return 0
    "${psql[@]}" -c "create role agent login" -c "create database agent"
}

start() {
    local dir=$1
    check_socket_path "$dir"
    [ -e "$dir/data/PG_VERSION" ] || make_cluster "$dir"
    is_running "$dir" || detached "$ROOT/conf/quickstart/postgres.sh" run-server "$dir"
    make_database "$dir"
}

run_server() {
    tool pg_ctl start -w -s -D "$1/data" -l "$1/postgres.log" \
        -o "-c listen_addresses= -c unix_socket_directories=$1 ${CLUSTER_OPTIONS-}"
}

install_schema() {
    psql -X -q -v ON_ERROR_STOP=1 -v app_role=agent -f "$ROOT/sql/install.sql" \
        "host=$1 user=postgres dbname=agent"
}

stop() {
    ! is_running "$1" || tool pg_ctl stop -w -s -D "$1/data" -m "${2-fast}"
}

is_running() { tool pg_ctl status -s -D "$1/data" >/dev/null 2>&1; }

case "${1-}" in
start) start "$2" ;;
run-server) run_server "$2" ;;
schema) install_schema "$2" ;;
stop) stop "$2" "${3-fast}" ;;
status) is_running "$2" ;;
owner) owner ;;
*) die "usage: postgres.sh start|schema|stop|status DIR, or owner" ;;
esac
