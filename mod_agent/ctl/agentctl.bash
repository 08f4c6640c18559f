# SPDX-License-Identifier: Apache-2.0
# Completion of agentctl's command line, for bash. It asks agentctl itself for
# the commands and the options of each.

_agentctl() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local words=("${COMP_WORDS[@]:1:COMP_CWORD-1}") usage command
    COMPREPLY=()
    case $previous in
    --kind) mapfile -t COMPREPLY < <(compgen -W 'service personal deployment' -- "$current") ;;
    --scopes) mapfile -t COMPREPLY < <(compgen -W 'read run deploy admin read,run' -- "$current") ;;
    --user) [ "${words[0]}" != build ] || mapfile -t COMPREPLY < <(compgen -u -- "$current") ;;
    --python | --node) mapfile -t COMPREPLY < <(compgen -c -- "$current") ;;
    --runners) mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
    --account | --confirm | --memory | --timeout | --log-retention | --backup-retention | --name | --deployment | --expires | --overlap | --database) ;;
    *) _agentctl_words ;;
    esac
}

# The next word of a command's name, or the options of the command.
_agentctl_words() {
    usage=$("${COMP_WORDS[0]}" --help 2>/dev/null | sed -n 's/^usage: agentctl \([^[]*\) \[.*/\1/p')
    while read -r command; do
        if [[ " ${words[*]} " == " $command "* ]]; then
            _agentctl_options "$command"
            return
        fi
    done <<<"$usage"
    mapfile -t COMPREPLY < <(compgen -W "$(_agentctl_next | sort -u)" -- "$current")
}

# The words that may follow those that were typed.
_agentctl_next() {
    while read -r command; do
        if [ ${#words[@]} = 0 ]; then
            echo "${command%% *}"
        elif [[ $command == "${words[*]} "* ]]; then
            command=${command#"${words[*]} "}
            echo "${command%% *}"
        fi
    done <<<"$usage"
    [ ${#words[@]} != 0 ] || printf '%s\n' --help --version
}

_agentctl_options() {
    local options name
    read -ra name <<<"$1"
    if [[ $current != -* && $1 == build ]]; then
        mapfile -t COMPREPLY < <(compgen -d -- "$current")
        return
    fi
    options=$("${COMP_WORDS[0]}" "${name[@]}" --help 2>/dev/null | sed -n 's/^  \(--[a-z-]*\).*/\1/p')
    mapfile -t COMPREPLY < <(compgen -W "$options --help" -- "$current")
}

complete -F _agentctl agentctl
