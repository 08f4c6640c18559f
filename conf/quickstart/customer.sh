# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A customer of region eu in the quick start: the account that signs up, its key, and
# the deployment that opens with it. Sourced by run.sh.

# Writes the lines of the virtual host of eu: customer_conf ACCOUNT
customer_conf() {
    cat <<CONF
AgentDeployment demo account=$1
<AgentGraph builtin>
    AgentModel demo
    AgentTool clock builtin
    AgentTool calculator builtin
</AgentGraph>
<Location "/deployments/demo">
    SetHandler agent
    AgentPrefix /deployments/demo
    AuthType AgentKey
    Require agent-account $1
</Location>
CONF
}

# The key file has the id of the account and its first key, which the server shows once.
meet_customer() {
    local account
    in_region eu customer_is_known || talk sign_up
    read -r account _ <"$RUN_DIR/eu/demo.key"
    in_region eu serve_customer "$account" ||
        die "The deployment of eu is not served; see $RUN_DIR/eu/logs/error_log"
    talk deployment
}

# with_key KEY ARGUMENT...: curl. Every user can read a program's arguments.
with_key() {
    printf 'x-api-key: %s\n' "$1" | curl -H @- "${@:2}"
}

# Its account may have been closed, or its key revoked: another one signs up then.
customer_is_known() {
    local key
    [ -e "$RUN_DIR/demo.key" ] || return 1
    read -r _ key <"$RUN_DIR/demo.key"
    [ "$(with_key "$key" -s --max-time 60 -o "$RUN_DIR/logs/auth" -w '%{http_code}' \
        "$(server_url)/auth")" != 401 ]
}

serve_customer() {
    customer_conf "$1" >"$RUN_DIR/demo.conf.new"
    if cmp -s "$RUN_DIR/demo.conf.new" "$RUN_DIR/demo.conf"; then
        rm "$RUN_DIR/demo.conf.new"
    else
        mv "$RUN_DIR/demo.conf.new" "$RUN_DIR/demo.conf"
        # The next start must not find lines that httpd refuses.
        quiet "$RUN_DIR/logs/httpd_restart" restart_server ||
            { rm "$RUN_DIR/demo.conf" && return 1; }
    fi
    wait_until 60 customer_is_served
}

customer_is_served() {
    local key
    read -r _ key <"$RUN_DIR/demo.key"
    # With a drawing once the report of a runner is shown.
    was_reported demo builtin &&
        with_key "$key" -fs --max-time 5 \
            "$(server_url)/deployments/demo/assistants/builtin/graph" | grep -q '"id"'
}
