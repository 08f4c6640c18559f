/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/run/ runners/builtin/message/ core/ */
/* OBJECTS: runners/builtin/model/ runners/builtin/tool/ */
/* OBJECTS: runners/builtin/runner.c runners/builtin/command.c */
/* OBJECTS: runners/builtin/base/graph.c runners/builtin/graph_read.c */
/* OBJECTS: runners/builtin/io/schedule.c runners/builtin/io/wire.c */
/* OBJECTS: runners/builtin/base/clean.c runners/builtin/base/host.c */
/* OBJECTS: runners/builtin/base/memory.c runners/builtin/base/problem.c */
/* OBJECTS: runners/builtin/base/raw.c runners/builtin/base/text.c */
/* OBJECTS: runners/builtin/base/surrogates.c runners/builtin/base/value.c */
/* OBJECTS: supervisor/runner/protocol/protocol.c */
/* OBJECTS: supervisor/runner/protocol/protocol_fields.c */
/* OBJECTS: supervisor/runner/protocol/protocol_record.c */
/* The members of a `call` message, and more lines. */
#include "runner_serve.h"

static void examine(const char *text, size_t length, apr_pool_t *pool)
{
    serve_after(PEER_HELLO PEER_ABOUT("call", "1"), text, length, true, pool);
}
