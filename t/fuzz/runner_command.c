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
/* Messages about runs: one that streams, one that reads its state, one that
 * waits for credit, and a call that reads its state. */
#include "runner_serve.h"

/* A checkpoint with it needs credit. */
#define LONG_INPUT (66 * 1024)

#define FROM_CHECKPOINT                                                        \
    "\"checkpoint\":{\"checkpoint_id\":\"" PEER_ID("9") "\"}}\n"

static void examine(const char *text, size_t length, apr_pool_t *pool)
{
    char *input = apr_pcalloc(pool, LONG_INPUT + 1);
    const char *starts;

    memset(input, 'a', LONG_INPUT);
    starts = apr_pstrcat(pool, PEER_HELLO, PEER_ABOUT("start", "1"),
                         "\"stream_modes\":[\"messages\"],"
                         "\"input\":{\"messages\":\"sleep 60000\"}}\n",
                         PEER_ABOUT("start", "2"), FROM_CHECKPOINT,
                         PEER_ABOUT("call", "4"),
                         "\"op\":\"update\",\"arguments\":{},", FROM_CHECKPOINT,
                         PEER_ABOUT("start", "3"), "\"input\":{\"messages\":\"",
                         input, "\"}}\n", NULL);
    serve_after(starts, text, length, false, pool);
}
