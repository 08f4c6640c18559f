# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the quick start's scripts: paths, messages, how
# to start something that must outlive the script. Sourced, never run.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# Read by the scripts that source this file.
# shellcheck disable=SC2034
RUN_DIR=$ROOT/.run

# A root shell that came by `su`, and most users' shells, lack what runuser,
# a2dismod and update-rc.d need.
export PATH=$PATH:/usr/sbin:/sbin

say() { printf '%s\n' "$*"; }

step() { printf '==> %s\n' "$*"; }

# One sentence, then the end.
die() {
    printf '%s\n' "$*" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

is_root() { [ "$(id -u)" -eq 0 ]; }

# run_as USER COMMAND...: as that user when we are root, else as ourselves.
run_as() {
    local user=$1
    shift
    if is_root && [ "$user" != root ]; then
        runuser -u "$user" -- "$@"
    else
        "$@"
    fi
}

# A server must not keep our terminal, a pipe we print into, or the job
# server of make open: their reader would wait for it.
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

# wait_until SECONDS COMMAND...: try often, give up after SECONDS.
wait_until() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.05
    done
}

# A zombie counts as gone, once its last thread has closed the files: who
# should reap it is not our business.
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
