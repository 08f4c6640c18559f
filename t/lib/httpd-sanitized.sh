#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# httpd with the sanitizer that the module was built with. The runtime has to
# come before everything else, so it is preloaded, into httpd only. Findings go
# to files in AGENT_TEST_LOGS. Leaks are the unit tests' business: httpd's own
# exit leaks too much. A sanitizer keeps what was freed, 256 MB by default, each of
# them a page that the kernel has to clear: 32 MB are more than any request frees.
# AgentTest::Server finds httpd and the runtime.
log=log_path=$AGENT_TEST_LOGS/report
export ASAN_OPTIONS="detect_leaks=0:quarantine_size_mb=32:$log"
export UBSAN_OPTIONS="print_stacktrace=1:$log"
export TSAN_OPTIONS="$log"
export LD_PRELOAD="$AGENT_TEST_RUNTIME"
exec "$AGENT_TEST_HTTPD" "$@"
