#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# httpd with the sanitizer that the module was built with. The runtime has to
# come before everything else, so it is preloaded, into httpd only. Findings go
# to files in AGENT_TEST_LOGS. Leaks are the unit tests' business: httpd's own
# exit leaks too much.
case $AGENT_TEST_VARIANT in
tsan) runtime=libtsan.so ;;
*) runtime=libasan.so ;;
esac
log=log_path=$AGENT_TEST_LOGS/report
export ASAN_OPTIONS="detect_leaks=0:$log"
export UBSAN_OPTIONS="print_stacktrace=1:$log"
export TSAN_OPTIONS="$log"
LD_PRELOAD=$(gcc -print-file-name=$runtime)
export LD_PRELOAD
exec "$(apxs -q SBINDIR)/$(apxs -q PROGNAME)" "$@"
