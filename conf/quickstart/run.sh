#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The quick start: from a checkout to a running agent server, the platform hosts
# of two regions, and conversations with them.
#   run.sh start    install, build, start, talk; PORT, MESSAGE, APPLICATION apply, and
#                   PYTHON and NODE, the programs of that application
#   run.sh stop     stop the servers; keep the data
#   run.sh purge    stop the servers and remove the data
# ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL choose the model.
set -euo pipefail
umask 022
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/server.sh"
. "$(dirname "$0")/applications.sh"
. "$(dirname "$0")/customer.sh"
cd "$ROOT"

# Not in the environment of the processes that this script starts.
export -n ANTHROPIC_API_KEY OPENAI_API_KEY
# Empty if the caller has not chosen a port.
ASKED_PORT=${PORT-}
PORT=${PORT:-8123}
POSTGRES=$ROOT/conf/quickstart/postgres.sh

check_port() {
    case $PORT in
    *[!0-9]* | '') die "PORT=$PORT is not a number." ;;
    ??????* | 0*) PORT=0 ;;
    esac
    # The two ports that follow are those of the platform hosts.
    if [ "$PORT" -lt 1 ] || [ "$PORT" -gt 65533 ]; then
        die "PORT=${ASKED_PORT} is out of range; expected 1 to 65533."
    fi
    local port
    if ! is_root && [ "$PORT" -lt "$(unprivileged_from)" ]; then
        die "Only root may listen on port $PORT: those below $(unprivileged_from)" \
            "are privileged. Choose another: make -f Makefile.apxs run" \
            "PORT=$(free_port), or start it as root."
    fi
    port=$(used_port "$PORT")
    [ -z "$port" ] || die "Port $port of 127.0.0.1 is in use by another" \
        "program. Choose another: make -f Makefile.apxs run" \
        "PORT=$(free_port) (it takes that one and the two that follow)"
}

# The first port that is not privileged.
unprivileged_from() {
    cat /proc/sys/net/ipv4/ip_unprivileged_port_start 2>/dev/null || say 1024
}

# Prints the first port in use among this one and the two that follow.
used_port() {
    local port
    for port in "$1" $(($1 + 1)) $(($1 + 2)); do
        ! port_answers "$port" || { say "$port" && return; }
    done
}

free_port() {
    local port=9123
    while [ "$port" -lt 65000 ] && [ -n "$(used_port "$port")" ]; do
        port=$((port + 100))
    done
    say "$port"
}

# quiet LOG COMMAND...: with all output in the log.
quiet() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 </dev/null
}

# Creates .run. If the users of PostgreSQL and httpd cannot enter the checkout, or
# its path is too long for a unix socket, .run is a link to another folder.
make_run_dir() {
    local base
    [ ! -e .run ] || return 0
    rm -f .run
    if all_can_enter "$ROOT" && [ "${#ROOT}" -le 70 ]; then
        mkdir .run
        return
    fi
    for base in /var/lib /var/tmp /tmp; do
        [ -w "$base" ] && ln -s "$(mktemp -d "$base/mod_agent-run.XXXXXX")" .run &&
            break
    done
    chmod 755 .run/
    say "    Other users cannot enter $ROOT: data in $(readlink .run)"
}

all_can_enter() {
    local user
    for user in "$("$POSTGRES" owner)" "$(server_user)"; do
        (cd / && run_as "$user" test -x "$1") || return
    done
}

check_run_dir_is_ours() {
    local owner=
    [ ! -e .run/postgres ] || owner=$(stat -c %U .run/postgres)
    [ -z "$owner" ] || [ "$owner" = "$("$POSTGRES" owner)" ] ||
        die "The data in $ROOT/.run belongs to the user $owner: run as that" \
            "user, or remove it with: make -f Makefile.apxs clean DATA=1"
}

build() {
    step "Building the modules and agent-runner"
    mkdir -p .build
    env -u MAKEFLAGS -u MFLAGS make -f Makefile.apxs "-j$(nproc)" all WERROR= \
        2>&1 </dev/null | tee .build/build.log | show_progress ||
        { tail -n 30 .build/build.log >&2 &&
            die "The build failed; its whole output is in $ROOT/.build/build.log"; }
}

# Prints a dot for every ten files; nothing if few are built.
show_progress() {
    local line count=0
    while IFS= read -r line; do
        case $line in '  CC '*) count=$((count + 1)) ;; *) continue ;; esac
        [ $((count % 10)) -ne 0 ] || printf .
    done
    [ "$count" -lt 10 ] || say
}

# in_region REGION COMMAND...: with the run folder of the region as RUN_DIR.
in_region() {
    local RUN_DIR=$RUN_DIR region=$1
    shift
    [ "$region" = us ] || RUN_DIR=$RUN_DIR/$region
    "$@"
}

start_database() {
    SERVER_USER=$(server_user) quiet "$RUN_DIR/logs/postgres_start" \
        "$POSTGRES" start "$RUN_DIR/postgres" ||
        give_up "PostgreSQL did not start; see $RUN_DIR/logs/postgres_start" \
            "and $RUN_DIR/postgres/postgres.log"
    REGION=$1 quiet "$RUN_DIR/logs/schema" "$POSTGRES" database "$RUN_DIR/postgres" ||
        give_up "The schema could not be installed; see $RUN_DIR/logs/schema"
}

start_server() {
    write_server_conf "$1"
    keep_accepted
    quiet "$RUN_DIR/logs/httpd_start" launch_server || {
        cat "$RUN_DIR/logs/httpd_start" >&2
        give_up "httpd did not start; see also $RUN_DIR/logs/error_log"
    }
    wait_until 30 server_is_healthy ||
        give_up "httpd does not answer on $(server_url); see $RUN_DIR/logs/error_log"
}

# Both regions at the same time, which share nothing.
start_databases() {
    local other
    step "Starting PostgreSQL of two regions, on sockets in $RUN_DIR/postgres and $RUN_DIR/eu/postgres"
    in_region eu start_database eu &
    other=$!
    start_database us
    wait "$other" || give_up
}

start_servers() {
    step "Starting httpd of region us on http://127.0.0.1:$PORT, of eu on http://127.0.0.1:$((PORT + 2))"
    start_server us
    in_region eu start_server eu
}

# Ends both regions, whichever of them failed.
give_up() {
    resolve_run_dir
    stop_all
    [ $# -eq 0 ] || say "$*" >&2
    exit 1
}

stop_all() {
    local region
    for region in us eu; do
        in_region "$region" stop_server
        in_region "$region" stop_database
    done
}

stop_database() {
    [ ! -e "$RUN_DIR/postgres" ] || "$POSTGRES" stop "$RUN_DIR/postgres"
}

# talk PART [GRAPH]
talk() {
    say
    conf/quickstart/talk.pl "$(server_url)" "$RUN_DIR" "$(server_model)" "$@" ||
        die "The conversation did not end as it should; see $RUN_DIR/logs/error_log"
}

# The conversation needs no network; the examples need a package registry.
hold_conversations() {
    talk conversation
    meet_customer
    say
    ! serve_examples || talk approval "${SERVED%% *}"
    talk next
}

# Into a server that runs already, an application comes without the conversations.
serve_application() {
    [ -z "${APPLICATION-}" ] || add_application "$APPLICATION"
}

resolve_run_dir() {
    RUN_DIR=$(readlink -f .run)
    mkdir -p .run/logs .run/htdocs .run/conf.d .run/eu/logs .run/eu/htdocs
}

server_runs_already() {
    [ -e .run ] || return
    resolve_run_dir
    wait_until 30 server_is_settled ||
        die "The server of this checkout runs but does not answer;" \
            "make -f Makefile.apxs stop stops it."
    server_is_running && in_region eu server_is_running && in_region eu server_is_healthy
}

start() {
    if server_runs_already; then
        say "The agent server of this checkout already runs on $(server_url)."
        [ -n "${APPLICATION-}" ] ||
            say "Stop it first to give it another port or model: make -f Makefile.apxs stop"
        [ "${ASKED_PORT:-$(server_defined PORT)}" = "$(server_defined PORT)" ] ||
            exit 1
        # Of an application its own restart reads them.
        [ -n "${APPLICATION-}" ] || read_new_conf
        [ -n "${APPLICATION-}" ] || hold_conversations
        serve_application
        return
    fi
    # Children whose parent was killed may still hold the port, and one region may have
    # ended without the other.
    [ ! -e .run ] || stop_all
    check_port
    conf/quickstart/deps.sh build run
    build
    check_run_dir_is_ours
    make_run_dir
    resolve_run_dir
    exec 9>.run/lock
    flock -n 9 || die "Another run of this checkout is at work."
    start_databases
    start_servers
    hold_conversations
    serve_application
}

something_runs() { region_runs || in_region eu region_runs; }

region_runs() {
    [ -n "$(server_pids)" ] || "$POSTGRES" status "$RUN_DIR/postgres"
}

stop() {
    if [ ! -e .run ] || ! resolve_run_dir || ! something_runs; then
        say "No agent server of this checkout is running."
        return
    fi
    stop_all
    say "Stopped. The threads are kept; run brings them back."
}

purge() {
    [ -e .run ] || return 0
    resolve_run_dir
    ! something_runs || stop
    rm -rf "$RUN_DIR" .run
    say "Removed the data in $RUN_DIR."
}

case "${1-}" in
start | stop | purge) "$1" ;;
*) die "usage: run.sh start|stop|purge" ;;
esac
