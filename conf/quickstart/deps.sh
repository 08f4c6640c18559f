#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that are missing, and nothing else.
#   deps.sh GROUP...       build, run, test, lint, bench, limiters
# A package counts as present if its programs or files are found, wherever they
# come from. No server of this machine is started, stopped or changed: services
# are not started during the installation, a new PostgreSQL gets no default
# cluster, a new nginx or Redis is not started at boot, and modules that enable themselves
# in the machine's own Apache are disabled again.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# group | package | command that detects it
packages() {
    cat <<'TABLE'
build|gcc|have gcc
build|libc6-dev|test -e /usr/include/stdio.h
build|pkg-config|have pkg-config
build|apache2-dev|have apxs || have apxs2
build|libjson-c-dev|pkg-config --exists json-c
build|libpq-dev|pkg-config --exists libpq
build|libcurl4-openssl-dev|pkg-config --exists libcurl
build|libssl-dev|pkg-config --exists libcrypto
build|libpcre2-dev|pkg-config --exists libpcre2-8
build|libbsd-dev|pkg-config --exists libbsd
build|libhiredis-dev|pkg-config --exists hiredis
run|apache2-bin|httpd_is_there
run|libaprutil1-dbd-pgsql|file_is_there '/usr/lib/*/apr-util-1/apr_dbd_pgsql*.so'
run|postgresql|postgres_is_there
run|curl|have curl
run|ca-certificates|file_is_there '/etc/ssl/certs/ca-certificates.crt'
run|perl|perl -MJSON::PP -e1
test|libapache2-mod-perl2|perl -MApache::TestRun -e1
test|libwww-perl|perl -MLWP::UserAgent -e1
test|libcpanel-json-xs-perl|perl -MCpanel::JSON::XS -e1
test|libcmocka-dev|pkg-config --exists cmocka
test|universal-ctags|have ctags
test|libapache2-mod-auth-openidc|file_is_there '/usr/lib/apache2/modules/mod_auth_openidc.so'
test|clang-format|have clang-format
test|nodejs|have node
test|npm|have npm
test|openssl|have openssl
test|wrk|have wrk
test|nginx-light|have nginx || [ -x /usr/sbin/nginx ]
test|chromium|have chromium
test|redis-server|have redis-server
test|gdb|have gcore
test|valgrind|have valgrind && test -e /usr/include/valgrind/callgrind.h
test|python3-venv|python3 -c 'import ensurepip, venv'
lint|clang|have clang
lint|libclang-rt-dev|file_is_there '/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a'
lint|clang-tidy|have clang-tidy
lint|cppcheck|have cppcheck
lint|shellcheck|have shellcheck
lint|mandoc|have mandoc
bench|libcpanel-json-xs-perl|perl -MCpanel::JSON::XS -e1
bench|wrk|have wrk
bench|nodejs|have node
bench|npm|have npm
limiters|nginx-light|have nginx || [ -x /usr/sbin/nginx ]
limiters|libapache2-mod-qos|file_is_there '/usr/lib/apache2/modules/mod_qos.so'
TABLE
}

httpd_is_there() { have apache2 || have httpd || [ -x /usr/sbin/apache2 ]; }

postgres_is_there() { [ -x "$(pg_config --bindir)/initdb" ]; }

file_is_there() { compgen -G "$1"; }

missing() {
    local group package probe
    while IFS='|' read -r group package probe; do
        case " $* " in *" $group "*) ;; *) continue ;; esac
        eval "$probe" >/dev/null 2>&1 || say "$package"
    done < <(packages)
}

as_admin() {
    if is_root; then "$@"; else sudo "$@"; fi
}

check_can_install() {
    have apt-get || die "These Debian packages are missing: $*." \
        "apt-get was not found; install their equivalents, then try again."
    is_root || have sudo || die "Debian packages are missing; installing" \
        "them needs root or sudo. As root: apt-get install $*"
}

enabled_modules() { compgen -G '/etc/apache2/mods-enabled/*.load' | sort; }

# The files remain, because the quick start loads them by path.
disable_new_modules() {
    local file
    while read -r file; do
        a2dismod -qf "$(basename "$file" .load)"
    done < <(comm -13 <(printf '%s\n' "$1") <(enabled_modules))
}

made=()

# Runs as root, so that sudo asks once. The policy that prevents services from
# being started is removed in any case.
install_packages() {
    local policy=/usr/sbin/policy-rc.d
    local cluster=/etc/postgresql-common/createcluster.d/zz-agent.conf
    local enabled
    trap 'rm -f "${made[@]}"' EXIT
    if [ ! -e "$policy" ]; then
        made+=("$policy")
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    case " $* " in *" postgresql "*)
        made+=("$cluster")
        mkdir -p "${cluster%/*}"
        echo "create_main_cluster = false" >"$cluster"
        ;;
    esac
    export DEBIAN_FRONTEND=noninteractive
    enabled=$(enabled_modules || true)
    apt-get update -q
    apt-get install -qy --no-install-recommends "$@" </dev/null
    [ -z "$enabled" ] || disable_new_modules "$enabled"
    case " $* " in *" nginx-light "*) update-rc.d nginx disable ;; esac
    case " $* " in *" redis-server "*) update-rc.d redis-server disable ;; esac
}

main() {
    local packages log
    mapfile -t packages < <(missing "$@")
    [ "${#packages[@]}" -gt 0 ] || return 0
    check_can_install "${packages[@]}"
    step "Installing ${packages[*]} (apt-get; no service is started)"
    log=$(mktemp)
    as_admin "$0" --install "${packages[@]}" >"$log" 2>&1 || {
        tail -n 30 "$log" >&2
        die "The installation failed; its whole output is in $log"
    }
    rm -f "$log"
    mapfile -t packages < <(missing "$@")
    [ "${#packages[@]}" -eq 0 ] ||
        die "Still missing after the installation: ${packages[*]}"
}

if [ "${1-}" = --install ]; then
    shift
    install_packages "$@"
else
    main "$@"
fi
