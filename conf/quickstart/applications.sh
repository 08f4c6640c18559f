# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Applications in the quick start. The examples: copied, built if they have changed, and
# served, each if agentctl can build it, which needs Python and a package registry. And
# the user's own (APPLICATION). Sourced by run.sh.

# The name of an example's graph. Both examples have the graph `shop`, which needs two names
# in one deployment.
example_graph() { if [ "$1" = python ]; then say shop; else say shop-js; fi; }

# The user of runners in httpd.conf.
runner_user() { if is_root; then say nobody; else id -un; fi; }

# Prints the values of a member of a record that agentctl has printed (--json), one a
# line. From logs, into which applications write too, nothing is taken but to show it.
built() {
    perl -MJSON::PP -e 'open my $file, "<", $ARGV[0] or die "$ARGV[0]: $!\n";
        my $value = decode_json(do { local $/; <$file> })->{$ARGV[1]};
        binmode STDOUT, ":utf8";
        print "$_\n" for ref $value ? @{$value} : $value;' "$1" "$2"
}

# as_runner_user COMMAND...: without a terminal, which other processes of that user
# could write to.
as_runner_user() {
    if is_root; then
        (cd / && setsid -w runuser -u "$(runner_user)" -- "$@")
    else
        "$@"
    fi
}

# Changes of the examples appear at the next start; what was built is kept. In the
# folder, where the user of runners may have made links, that user writes, not root.
copy_example() {
    local target=$RUN_DIR/applications/$1 source=$RUN_DIR/applications/$1.new
    rm -rf "$source"
    mkdir -p "$source" "$target"
    cp -R "$ROOT/conf/quickstart/examples/$1/." "$source"
    sed -i "s/^    \"shop\":/    \"$(example_graph "$1")\":/" \
        "$source/langgraph.json"
    ! is_root || chown "$(runner_user)" "$target"
    tar -C "$source" -cf - . |
        as_runner_user tar -C "$target" -xf - >"$RUN_DIR/logs/copy_$1" 2>&1
}

# Prints what a build of the example depends on: its files and its name, agentctl, the
# runner, and the programs that are found.
example_inputs() {
    local program runner=$1
    [ "$runner" = python ] || runner=node
    say "$(example_graph "$1") $PATH"
    for program in python3 node; do
        "$program" --version 2>&1 || true
    done
    find "$ROOT/conf/quickstart/examples/$1" "$ROOT/.build/release/agentctl" \
        "$ROOT/.build/release/runners/$runner" -type f ! -name '*.pyc' \
        -exec sha256sum {} + | sort
}

# Whether the last build had the same inputs. Its note is not in the folder of the
# example, which belongs to the user of runners.
example_is_built() {
    local target=$RUN_DIR/applications/$1
    [ -d "$target/.agent/venv" ] || [ -d "$target/node_modules" ] || return
    [ -e "$RUN_DIR/logs/build_$1" ] && [ -e "$target.json" ] &&
        example_inputs "$1" | cmp -s - "$target.inputs"
}

# Prints the steps of agentctl on stderr. With short time limits, so that a registry that
# does not answer fails the build soon.
build_example() {
    local target=$RUN_DIR/applications/$1
    rm -f "$target.inputs"
    PIP_RETRIES=1 PIP_DEFAULT_TIMEOUT=15 UV_HTTP_TIMEOUT=15 \
        npm_config_fetch_retries=1 npm_config_fetch_timeout=15000 \
        timeout 600 "$ROOT/.build/release/agentctl" build --json "$target" \
        2>&1 >"$target.json" </dev/null | tee "$RUN_DIR/logs/build_$1" |
        sed -n 's/^==> \(Creating\|Installing\|Importing\)/      \1/p' >&2 || return
    example_inputs "$1" >"$target.inputs"
}

# Builds the example if its inputs have changed since the last build.
provide_example() {
    if example_is_built "$1"; then
        say "    The example in $1 is built; nothing has changed" >&2
        return
    fi
    say "    Building the example in $1, a minute or two the first time ($RUN_DIR/logs/build_$1)" >&2
    build_example "$1"
}

# Prints the directives of the examples that were built; on stderr the progress, the
# reasons of failures, and the Node that was chosen.
examples_conf() {
    local language log
    for language in python javascript; do
        log=$RUN_DIR/logs/build_$language
        if copy_example "$language" && provide_example "$language"; then
            built "$RUN_DIR/applications/$language.json" directives
            sed -n 's/^==> Node /    The example in JavaScript has Node /p' "$log" >&2
        else
            say "    The example in $language is left out: $(build_problem "$log")" \
                "($log)" >&2
            print_failed_build "$log" >&2
        fi
    done
}

# The last error of a build.
build_problem() {
    local line
    line=$(sed -n '/^agentctl: warning: /d; s/^agentctl: //p' "$1" | tail -n 1)
    say "${line:-it was not built in 600 s}"
}

# The output of the programs, and the errors of agentctl but the last one.
print_failed_build() {
    grep -vxF "agentctl: $(build_problem "$1")" "$1" |
        sed -n '/^==> /!s/^/        /p'
}

# Prints the id of the system assistant of a graph, whose name may have any character: it
# has no place in a path.
find_assistant() {
    local question
    question=$(perl -MJSON::PP -e 'print JSON::PP->new->encode({graph_id => $ARGV[0],
        metadata => {created_by => "system"}})' "$1")
    curl -fs --max-time 5 -H 'Content-Type: application/json' --data-raw "$question" \
        "$(server_url)/assistants/search" |
        perl -MJSON::PP -0777 -ne 'print decode_json($_)->[0]{assistant_id} // ""'
}

# With a drawing once the report of a runner is shown.
graph_is_served() {
    local id
    was_reported default "$1" &&
        id=$(find_assistant "$1") && [ -n "$id" ] &&
        curl -fs --max-time 5 "$(server_url)/assistants/$id/graph" | grep -q '"id"'
}

check_conf() { quiet "$RUN_DIR/logs/httpd_check" check_server_conf; }

# The folder of RUN_DIR whose files agents.conf includes.
include_from() {
    sed -i "s/^Define CONF_D .*/Define CONF_D \"$1\"/" "$RUN_DIR/httpd.conf"
}

# include_file FILE: links it into conf.kept, unless httpd refuses it.
include_file() {
    ln -s "$1" "$RUN_DIR/conf.kept/"
    ! check_conf || return 0
    rm "$RUN_DIR/conf.kept/${1##*/}"
    say "    httpd refuses $1, which is left out:"
    sed 's/^/        /' "$RUN_DIR/logs/httpd_check"
}

# keep_accepted [LAST]: has httpd include conf.d; if it refuses that, what it accepts of
# it, one file after the other, LAST at the end, so that no file takes the place of
# another one. Names those left out. Removes the applications.conf that it refuses
# without them.
keep_accepted() {
    local file
    include_from conf.d
    ! check_conf || return 0
    rm -rf "$RUN_DIR/conf.kept"
    mkdir "$RUN_DIR/conf.kept"
    include_from conf.kept
    check_conf || rm -f "$RUN_DIR/applications.conf"
    for file in "$RUN_DIR"/conf.d/*.conf; do
        [ ! -e "$file" ] || [ "$file" = "${1-}" ] || include_file "$file"
    done
    [ ! -e "${1-}" ] || include_file "$1"
}

# Has the server that runs read the files that were added to conf.d or have changed
# since it read them.
read_new_conf() {
    [ -n "$(find "$RUN_DIR/conf.d" -newer "$RUN_DIR/started" -print -quit)" ] || return 0
    step "Restarting httpd with the changes in $RUN_DIR/conf.d"
    keep_accepted
    quiet "$RUN_DIR/logs/httpd_restart" restart_server
}

# is_included FILE: after keep_accepted.
is_included() {
    [ -e "$1" ] && {
        [ "$1" = "$RUN_DIR/applications.conf" ] ||
            grep -qxF 'Define CONF_D "conf.d"' "$RUN_DIR/httpd.conf" ||
            [ -e "$RUN_DIR/conf.kept/${1##*/}" ]
    }
}

# replace_conf FILE: puts FILE.new in its place and restarts httpd; restores the old one
# if httpd refuses the new one.
replace_conf() {
    local conf=$1 last=
    [ "$conf" = "$RUN_DIR/applications.conf" ] || last=$conf
    [ ! -e "$conf" ] || cp "$conf" "$conf.old"
    mv "$conf.new" "$conf"
    keep_accepted "$last"
    if is_included "$conf"; then
        rm -f "$conf.old"
        quiet "$RUN_DIR/logs/httpd_restart" restart_server
        return
    fi
    if [ -e "$conf.old" ]; then
        mv "$conf.old" "$conf"
        [ -z "$last" ] || include_file "$conf" >/dev/null
    else
        rm -f "$conf"
    fi
    return 1
}

replace_examples() {
    local conf=$RUN_DIR/applications.conf
    ! cmp -s "$conf.new" "$conf" || return 0
    replace_conf "$conf" && return
    say "    httpd does not serve the examples; see $RUN_DIR/logs/httpd_check" >&2
    return 1
}

# Sets SERVED to the graphs of the examples that the server serves, and names those that
# it does not; fails if it serves none.
serve_examples() {
    local graph
    SERVED=
    step "Building the example applications (conf/quickstart/examples)"
    examples_conf >"$RUN_DIR/applications.conf.new"
    replace_examples || return
    for graph in $(declared_graphs); do
        if wait_until 60 graph_is_served "$graph"; then
            SERVED="${SERVED:+$SERVED }$graph"
        else
            say "    The graph $graph is not served; see $RUN_DIR/logs/error_log"
            # The next start builds again.
            rm -f "$RUN_DIR"/applications/*.inputs
        fi
    done
    [ -n "$SERVED" ]
}

# Prints the graphs of the examples that applications.conf declares.
declared_graphs() {
    local language
    while read -r language; do
        built "$RUN_DIR/applications/$language.json" graphs
    done < <(sed -n 's/^AgentApplication \([^ ]*\) .*/\1/p' "$RUN_DIR/applications.conf")
}

# --- The user's own applications ------------------------------------------------

# build_own DIRECTORY RECORD LOG: as the user of runners, who executes it, with the
# programs that PYTHON and NODE name.
build_own() {
    local options=()
    ! is_root || options=(--user "$(runner_user)")
    [ -z "${PYTHON-}" ] || options+=(--python "$PYTHON")
    [ -z "${NODE-}" ] || options+=(--node "$NODE")
    "$ROOT/.build/release/agentctl" build --json "${options[@]}" "$1" \
        2>&1 >"$2" </dev/null | tee "$3"
}

# was_added DIRECTORY: whether a file in conf.d declares it.
was_added() {
    sed -n 's/^AgentApplication [^ ]* "\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' \
        "$RUN_DIR"/conf.d/*.conf 2>/dev/null | grep -qxF -e "$1"
}

# refuse_unbuilt DIRECTORY
refuse_unbuilt() {
    was_added "$1" ||
        die "The application in $1 is not served: it could not be built."
    die "The application in $1 could not be built. Its processes keep the code that they" \
        "have loaded; each one that is started from now on loads the files as they are."
}

# Ends with a message if the record has lines that move or close paths which the
# conversations of `run` and the other applications of this server need.
check_paths() {
    local line member
    built "$1" directives | while IFS= read -r line; do
        case $line in
        'AgentPrefix '*) member=http.mount_prefix ;;
        '<LocationMatch "^/assistants('*) member=http.disable_assistants ;;
        '<LocationMatch "^/threads('*) member=http.disable_threads ;;
        '<LocationMatch "^(/threads/'*) member=http.disable_runs ;;
        *) continue ;;
        esac
        die "The application in $2 is not served: $member of its langgraph.json is for" \
            "the whole server, which has other graphs. Remove it, or serve the" \
            "application with an httpd of its own ($line)."
    done
}

# check_folder CONF RECORD DIRECTORY: ends with a message if the file declares another
# folder, which has the same name.
check_folder() {
    local line
    line=$(built "$2" directives | sed -n 1p)
    [ ! -e "$1" ] || grep -qF -e "$line" "$1" ||
        die "The application in $3 is not served: $1 declares another folder of that" \
            "name. Rename one of them, or remove the file."
}

# add_application DIRECTORY: builds it, and serves it from now on with the directives that
# agentctl prints, in a file that has its name and that each start includes.
add_application() {
    local directory conf graph graphs record=$RUN_DIR/logs/build_own.json
    [ -f "$1/langgraph.json" ] || die "APPLICATION=$1 has no langgraph.json."
    directory=$(readlink -f "$1")
    step "Building the application in $directory"
    build_own "$directory" "$record" "$RUN_DIR/logs/build_own" ||
        refuse_unbuilt "$directory"
    conf=$RUN_DIR/conf.d/$(built "$record" name).conf
    check_paths "$record" "$directory" || exit
    check_folder "$conf" "$record" "$directory" || exit
    built "$record" directives >"$conf.new"
    step "Restarting httpd with $conf"
    replace_conf "$conf" || die "httpd does not serve the application in $directory."
    mapfile -t graphs < <(built "$record" graphs)
    for graph in "${graphs[@]}"; do
        wait_until 60 graph_is_served "$graph" ||
            die "The graph $graph is not served; see $RUN_DIR/logs/error_log"
    done
    say "The application in $directory is served on $(server_url); assistant_id: ${graphs[*]}"
    say "It is served after each start, as long as there is $conf."
    say "After a change of its code or of langgraph.json: the same command again."
}
