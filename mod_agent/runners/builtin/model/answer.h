/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model's answer while it arrives, and the message it becomes. An answer is
 * a list of blocks in the order of the model: texts and calls of tools.
 */
#ifndef AGENT_RUNNER_ANSWER_H
#define AGENT_RUNNER_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include <apr_tables.h>
#include <json-c/json.h>

#include "core/buffer.h"
#include "core/uuid.h"

/* Texts, arguments, names and ids together; a longer answer fails the run. */
#define RUNNER_ANSWER_MAX ((size_t)2 * 1024 * 1024)
/* A name, an id, and any other word that is kept for response_metadata. */
#define RUNNER_ANSWER_WORD_MAX ((size_t)512)
/* Calls of tools in one message. */
#define RUNNER_ANSWER_CALLS_MAX 128

typedef struct runner_block_t {
    bool is_call;
    /* The model's number for the block or call; -1 when it gave none. */
    int index;
    /* The text so far, or the JSON text of the arguments so far. */
    runner_buffer_t text;
    /* Of a call only. */
    const char *call_id;
    const char *name;
    /* The half of a character that the arguments end with (halves.h). */
    unsigned pending_surrogate;
} runner_block_t;

/* What a message is made of an answer for. */
typedef enum runner_answer_view_t {
    /* It is complete. */
    RUNNER_ANSWER_WHOLE,
    /* It goes on: its texts so far. */
    RUNNER_ANSWER_RUNNING,
    /* The run was cancelled: its texts so far, for good; calls of tools are
     * left out, since nobody will answer them. */
    RUNNER_ANSWER_CUT
} runner_answer_view_t;

typedef struct runner_answer_t {
    apr_pool_t *pool;
    /* The id of the message: ours, since some servers repeat theirs. */
    char message_id[AGENT_UUID_SIZE];
    apr_array_header_t *blocks;
    /* Content becomes an array of blocks when a tool is called. */
    bool has_block_content;
    /* Bytes of all that the model has sent and that is kept. */
    size_t size;
    int calls;
    /* What there is too much of; NULL while the limits above are kept. The
     * caller fails the call; nothing more is added. */
    const char *excess;
    /* The half of a character that the text ends with (halves.h). */
    unsigned pending_surrogate;
    int64_t input_tokens;
    int64_t output_tokens;
    /* All may be NULL; they go to response_metadata. */
    const char *provider;
    const char *response_id;
    const char *model_name;
    const char *stop_reason;
    const char *stop_sequence;
    const char *finish_reason;
    const char *fingerprint;
} runner_answer_t;

/* An empty answer with a new message id. */
void runner_answer_init(runner_answer_t *answer, apr_pool_t *pool);

/* Adds to the last block if it is a text, else begins one. */
void runner_answer_add_text(runner_answer_t *answer, const char *text,
                            size_t length);

/* Begins a call of a tool; id NULL makes one. NULL when answer->excess is set,
 * or was set by this very call. */
runner_block_t *runner_answer_add_call(runner_answer_t *answer, int index,
                                       const char *id, const char *name);

/* The call with that index, NULL when there is none. */
runner_block_t *runner_answer_find_call(const runner_answer_t *answer,
                                        int index);

/* Adds to the JSON text of a call's arguments. */
void runner_answer_add_args(runner_answer_t *answer, runner_block_t *call,
                            const char *text, size_t length);

/*
 * Keeps a word of the model for response_metadata: *kept is one of the members
 * above and becomes a copy of text, which counts in size. NULL forgets it.
 */
void runner_answer_keep(runner_answer_t *answer, const char **kept,
                        const char *text);

/* Whether the model has said anything yet. */
bool runner_answer_has_content(const runner_answer_t *answer);

/* The `ai` message, one reference for the caller. */
json_object *runner_answer_message(const runner_answer_t *answer,
                                   runner_answer_view_t view);

/* Its texts joined, in pool; "" when there are none. */
const char *runner_answer_text(const runner_answer_t *answer, apr_pool_t *pool);

#endif
