# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Functions shared by the quick start's scripts: paths, messages, users and
# processes. Sourced, never executed.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# Read by the scripts that source this file.
# shellcheck disable=SC2034
RUN_DIR=$ROOT/.run

# runuser, a2dismod and update-rc.d are in these folders, which shells of most
# users, and those of root after `su`, do not search.
export PATH=$PATH:/usr/sbin:/sbin

say() { printf '%s\n' "$*"; }

step() { printf '==> %s\n' "$*"; }

# Prints the message and exits.
die() {
    printf '%s\n' "$*" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

is_root() { [ "$(id -u)" -eq 0 ]; }

# run_as USER COMMAND...: as that user if this is root, else as the current user.
run_as() {
    local user=$1
    shift
    if is_root && [ "$user" != root ]; then
        runuser -u "$user" -- "$@"
    else
        "$@"
    fi
}

# detached COMMAND...: without open files beyond stdout and stderr. Otherwise a
# server would keep a pipe or the job server of make open, whose reader would
# wait for it.
detached() {
    (
        local fd
        for fd in /proc/self/fd/*; do
            fd=${fd##*/}
            [ "$fd" -le 2 ] || eval "exec $fd>&-"
        done
        exec "$@" </dev/null
    )
}

# wait_until SECONDS COMMAND...: repeats the command until it succeeds; fails
# after SECONDS.
wait_until() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.05
    done
}

# A zombie counts as gone once its last thread has closed its files; its parent
# may reap it later.
processes_gone() {
    local pid status
    for pid in "$@"; do
        status=$(tr '\t\n' '  ' 2>/dev/null <"/proc/$pid/status" || true)
        case $status in
        '' | *"State: Z "*" Threads: 1 "*) ;;
        *) return 1 ;;
        esac
    done
}
