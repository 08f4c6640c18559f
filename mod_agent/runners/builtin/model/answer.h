/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer of a model while it streams, and its message. An answer is a list
 * of blocks in the model's order: texts and tool calls.
 */
#ifndef AGENT_RUNNER_ANSWER_H
#define AGENT_RUNNER_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include <apr_tables.h>
#include <json-c/json.h>

#include "core/buffer.h"
#include "core/uuid.h"

/* The most bytes of the texts, arguments, names and ids together. */
#define RUNNER_ANSWER_MAX ((size_t)2 * 1024 * 1024)
/* The longest name, id, or other word of response_metadata, in bytes. */
#define RUNNER_ANSWER_WORD_MAX ((size_t)512)
/* The most tool calls of one message. */
#define RUNNER_ANSWER_CALLS_MAX 128

typedef struct runner_block_t {
    bool is_call;
    /* The model's index of the block or call; -1 when it sent none. */
    int index;
    /* The text so far, or the JSON text of the arguments so far. */
    agent_buffer_t text;
    /* Set for a tool call only. */
    const char *call_id;
    const char *name;
    /* A surrogate at the end of the arguments (base/surrogates.h), or 0. */
    unsigned pending_surrogate;
} runner_block_t;

/* The purpose of a message made from an answer. */
typedef enum runner_answer_view_t {
    /* The complete message. */
    RUNNER_ANSWER_COMPLETE,
    /* The text so far, for messages/partial. */
    RUNNER_ANSWER_PREVIEW,
    /* The message of a cancelled run: the text so far. Tool calls are left out,
     * since they will have no results. */
    RUNNER_ANSWER_CANCELLED
} runner_answer_view_t;

typedef struct runner_answer_t {
    apr_pool_t *pool;
    /* The id of the message; not the server's, which some servers repeat. */
    char message_id[AGENT_UUID_SIZE];
    apr_array_header_t *blocks;
    /* The content of a message with tool calls is an array of blocks. */
    bool has_block_content;
    /* Bytes of the answer that are stored. */
    size_t size;
    int calls;
    /* The limit that was exceeded, for a person; NULL while there is none. The
     * caller fails the call; nothing more is stored. */
    const char *excess;
    /* A surrogate at the end of the text (base/surrogates.h), or 0. */
    unsigned pending_surrogate;
    int64_t input_tokens;
    int64_t output_tokens;
    /* For response_metadata; each may be NULL. */
    const char *provider;
    const char *response_id;
    const char *model_name;
    const char *stop_reason;
    const char *stop_sequence;
    const char *finish_reason;
    const char *fingerprint;
} runner_answer_t;

/* Makes an empty answer with a new message id. */
void runner_answer_init(runner_answer_t *answer, apr_pool_t *pool);

/* Appends to the last block if that is a text, else begins a text block. */
void runner_answer_add_text(runner_answer_t *answer, const char *text,
                            size_t length);

/* Begins a tool call; an id is made when id is NULL. Returns NULL when
 * answer->excess is set, or becomes set. */
runner_block_t *runner_answer_add_call(runner_answer_t *answer, int index,
                                       const char *id, const char *name);

/* The tool call of that index; NULL when there is none. */
runner_block_t *runner_answer_find_call(const runner_answer_t *answer,
                                        int index);

/* Appends to the JSON text of a tool call's arguments. */
void runner_answer_add_args(runner_answer_t *answer, runner_block_t *call,
                            const char *text, size_t length);

/* Sets *kept, one of the members for response_metadata, to a copy of text,
 * which counts in size; to NULL when text is NULL. */
void runner_answer_set_word(runner_answer_t *answer, const char **kept,
                            const char *text);

/* Whether the answer has a block. */
bool runner_answer_has_content(const runner_answer_t *answer);

/* The `ai` message; the caller gets one reference. */
json_object *runner_answer_message(const runner_answer_t *answer,
                                   runner_answer_view_t view);

/* The texts of the answer joined, in pool; "" when there are none. */
const char *runner_answer_text(const runner_answer_t *answer, apr_pool_t *pool);

#endif
