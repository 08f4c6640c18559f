# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# httpd in the quick start: its configuration, start, health check and stop.
# Sourced by run.sh, which sets PORT and RUN_DIR.

apxs_value() { "$(command -v apxs || command -v apxs2)" -q "$1"; }

# The user of httpd's children: www-data under root, else the current user.
server_user() { if is_root; then say www-data; else id -un; fi; }

# Sets MODEL, MODEL_URL and MODEL_KEY from the caller's environment.
choose_model() {
    MODEL=demo MODEL_URL='' MODEL_KEY=''
    if [ -n "${OPENAI_BASE_URL-}" ] ||
        { [ -n "${OPENAI_API_KEY-}" ] && [ -z "${ANTHROPIC_API_KEY-}" ]; }; then
        MODEL=openai:${OPENAI_MODEL:-gpt-4.1-mini}
        MODEL_URL=${OPENAI_BASE_URL-}
        MODEL_KEY=${OPENAI_API_KEY-}
    elif [ -n "${ANTHROPIC_API_KEY-}" ]; then
        MODEL=anthropic:${ANTHROPIC_MODEL:-claude-sonnet-4-5}
        MODEL_URL=${ANTHROPIC_BASE_URL-}
        MODEL_KEY=$ANTHROPIC_API_KEY
    fi
}

define() { printf 'Define %s "%s"\n' "$1" "$2"; }

# write_server_conf REGION: .run/httpd.conf of us, .run/eu/httpd.conf of eu, whose main
# port is that of its platform host.
write_server_conf() {
    local region=$1
    {
        define ROOT "$ROOT"
        define RUN_DIR "$RUN_DIR"
        define BUILD_DIR "$ROOT/.build/release"
        define MODULES "$(apxs_value LIBEXECDIR)"
        define REGION "$region"
        define PORT_US "$((PORT + 1))"
        define PORT_EU "$((PORT + 2))"
        if [ "$region" = us ]; then
            define PORT "$PORT"
            define PLATFORM_PORT "$((PORT + 1))"
            define CONF_D conf.d
            define_model
        else
            define PORT "$((PORT + 2))"
            define PLATFORM_PORT "$((PORT + 2))"
        fi
        ! is_root || say "Define AS_ROOT"
        say "Include \"$ROOT/conf/quickstart/httpd.conf\""
        [ "$region" != us ] || say "Include \"$ROOT/conf/quickstart/agents.conf\""
    } >"$RUN_DIR/httpd.conf"
}

define_model() {
    choose_model
    local key_file=$RUN_DIR/model.key
    rm -f "$key_file"
    [ -z "$MODEL_KEY" ] || (umask 077 && say "$MODEL_KEY" >"$key_file")
    define MODEL "$MODEL"
    [ -z "$MODEL_URL" ] || define MODEL_URL "$MODEL_URL"
    [ -z "$MODEL_KEY" ] || define MODEL_KEY_FILE "$key_file"
}

# ask_database ARGUMENT...: psql with what stdin has, as superuser.
ask_database() {
    "$(pg_config --bindir)/psql" -X -q -At -v ON_ERROR_STOP=1 "$@" \
        "host=$RUN_DIR/postgres user=postgres dbname=agent"
}

# Notes when the supervisor that is to be started is the oldest one that counts.
note_start() {
    ask_database <<<'select clock_timestamp()' >"$RUN_DIR/started.new" &&
        mv "$RUN_DIR/started.new" "$RUN_DIR/started"
}

# was_reported DEPLOYMENT GRAPH: whether a runner since the last start has imported the
# graph. The API shows reports of earlier starts too, of other code.
was_reported() {
    local since
    since=$(cat "$RUN_DIR/started" 2>/dev/null) || since=-infinity
    [ "$(ask_database -v deployment="$1" -v graph="$2" -v since="$since" <<'SQL'
select exists (
    select
      from agent.graphs g
      join agent.deployments d on d.deployment_id = g.deployment_id
      join agent.workers w on w.worker_id = g.worker_id
     where d.name = :'deployment'
       and g.graph_id = :'graph'
       and g.error is null
       and w.started_at >= :'since');
SQL
    )" = t ]
}

launch_server() {
    note_start
    detached "$(apxs_value SBINDIR)/$(apxs_value PROGNAME)" \
        -f "$RUN_DIR/httpd.conf" -k start
}

check_server_conf() {
    "$(apxs_value SBINDIR)/$(apxs_value PROGNAME)" -f "$RUN_DIR/httpd.conf" -t
}

restart_server() {
    note_start
    detached "$(apxs_value SBINDIR)/$(apxs_value PROGNAME)" \
        -f "$RUN_DIR/httpd.conf" -k graceful
}

# The processes that were started with this configuration, with children whose
# parent was killed. grep reads the pattern from a file: on its command line it
# would match grep itself.
server_pids() {
    grep -slzxF -f <(say "$RUN_DIR/httpd.conf") /proc/[0-9]*/cmdline |
        cut -d/ -f3
}

server_pid() { cat "$RUN_DIR/httpd.pid" 2>/dev/null; }

server_is_running() {
    local pid
    pid=$(server_pid) && [[ " $(server_pids | tr '\n' ' ') " = *" $pid "* ]]
}

server_defined() { sed -n "s/^Define $1 \"\(.*\)\"/\1/p" "$RUN_DIR/httpd.conf"; }
server_url() { say "http://127.0.0.1:$(server_defined PORT)"; }
server_model() { server_defined MODEL; }

server_is_healthy() {
    curl -fs --max-time 5 -o "$RUN_DIR/logs/health" "$(server_url)/ok?check_db=1"
}

# A server that is being stopped runs but does not answer.
server_is_settled() { ! server_is_running || server_is_healthy; }

port_answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# The parent stops its children. Children without a parent ignore SIGTERM.
stop_server() {
    local pids patience=2
    mapfile -t pids < <(server_pids)
    [ "${#pids[@]}" -gt 0 ] || return 0
    if server_is_running; then
        kill "$(server_pid)"
        patience=30
    fi
    wait_until "$patience" processes_gone "${pids[@]}" && return
    kill -KILL "${pids[@]}" 2>/dev/null || true
    wait_until 10 processes_gone "${pids[@]}"
}
