/* SPDX-License-Identifier: Apache-2.0 */
/* Collecting the blocks of an answer and building its message. */
#include "answer.h"

#include <string.h>

#include <apr_strings.h>

#include "core/json.h"
#include "runners/builtin/base/clean.h"
#include "runners/builtin/base/raw.h"
#include "runners/builtin/base/value.h"
#include "runners/builtin/message/message.h"

#define LONG_WORD "a name or an id of more than 512 bytes"

void runner_answer_init(runner_answer_t *answer, apr_pool_t *pool)
{
    memset(answer, 0, sizeof(*answer));
    answer->pool = pool;
    answer->blocks = apr_array_make(pool, 4, sizeof(runner_block_t *));
    agent_uuid_v7(answer->message_id);
}

static runner_block_t *add_block(runner_answer_t *answer)
{
    runner_block_t *block = apr_pcalloc(answer->pool, sizeof(*block));

    agent_buffer_init(&block->text, answer->pool);
    APR_ARRAY_PUSH(answer->blocks, runner_block_t *) = block;
    return block;
}

static runner_block_t *get_block(const runner_answer_t *answer, int i)
{
    return APR_ARRAY_IDX(answer->blocks, i, runner_block_t *);
}

static void count_size(runner_answer_t *answer, size_t length)
{
    answer->size += length;
    if (answer->size > RUNNER_ANSWER_MAX && answer->excess == NULL) {
        answer->excess = "an answer of more than 2 MiB";
    }
}

void runner_answer_add_text(runner_answer_t *answer, const char *text,
                            size_t length)
{
    int count = answer->blocks->nelts;
    runner_block_t *block = count > 0 ? get_block(answer, count - 1) : NULL;

    if (length == 0 || answer->excess != NULL) {
        return;
    }
    if (block == NULL || block->is_call) {
        block = add_block(answer);
    }
    agent_buffer_append(&block->text, text, length);
    count_size(answer, length);
}

/* A UUID without its dashes: OpenAI accepts at most 40 characters. */
static const char *make_call_id(apr_pool_t *pool)
{
    char uuid[AGENT_UUID_SIZE];
    char *id = apr_pstrcat(pool, "call_", "00000000000000000000000000000000",
                           NULL);
    char *out = id + strlen("call_");

    agent_uuid_v7(uuid);
    for (const char *in = uuid; *in != '\0'; in++) {
        if (*in != '-') {
            *out++ = *in;
        }
    }
    return id;
}

static bool is_word(const char *text)
{
    return text == NULL || strlen(text) <= RUNNER_ANSWER_WORD_MAX;
}

/* The limit that one more call exceeds; NULL when it exceeds none. */
static const char *find_excess(const runner_answer_t *answer, const char *id,
                               const char *name)
{
    if (answer->calls == RUNNER_ANSWER_CALLS_MAX) {
        return "more than 128 calls of tools";
    }
    return is_word(id) && is_word(name) ? NULL : LONG_WORD;
}

runner_block_t *runner_answer_add_call(runner_answer_t *answer, int index,
                                       const char *id, const char *name)
{
    runner_block_t *block;

    if (answer->excess == NULL) {
        answer->excess = find_excess(answer, id, name);
    }
    if (answer->excess != NULL) {
        return NULL;
    }
    block = add_block(answer);
    answer->calls++;
    block->is_call = true;
    block->index = index;
    block->call_id = id != NULL && *id != '\0' ? apr_pstrdup(answer->pool, id)
                                               : make_call_id(answer->pool);
    block->name = apr_pstrdup(answer->pool, name ? name : "");
    count_size(answer, strlen(block->call_id) + strlen(block->name));
    return block;
}

runner_block_t *runner_answer_find_call(const runner_answer_t *answer,
                                        int index)
{
    for (int i = answer->blocks->nelts - 1; i >= 0; i--) {
        runner_block_t *block = get_block(answer, i);

        if (block->is_call && block->index == index) {
            return block;
        }
    }
    return NULL;
}

void runner_answer_add_args(runner_answer_t *answer, runner_block_t *call,
                            const char *text, size_t length)
{
    if (answer->excess == NULL) {
        agent_buffer_append(&call->text, text, length);
        count_size(answer, length);
    }
}

void runner_answer_set_word(runner_answer_t *answer, const char **kept,
                            const char *text)
{
    if (text != NULL && *kept != NULL && strcmp(*kept, text) == 0) {
        return;
    }
    if (!is_word(text) && answer->excess == NULL) {
        answer->excess = LONG_WORD;
    }
    *kept = NULL;
    if (text != NULL && answer->excess == NULL) {
        *kept = apr_pstrdup(answer->pool, text);
        count_size(answer, strlen(text));
    }
}

bool runner_answer_has_content(const runner_answer_t *answer)
{
    return answer->blocks->nelts > 0;
}

const char *runner_answer_text(const runner_answer_t *answer, apr_pool_t *pool)
{
    agent_buffer_t joined;

    agent_buffer_init(&joined, pool);
    for (int i = 0; i < answer->blocks->nelts; i++) {
        runner_block_t *block = get_block(answer, i);

        if (!block->is_call) {
            agent_buffer_append(&joined, agent_buffer_text(&block->text),
                                agent_buffer_length(&block->text));
        }
    }
    return agent_buffer_text(&joined);
}

/* The arguments as an object that belongs to pool, {} when there are none; NULL
 * when they are not an object, or take more than *left, the memory that is left
 * for the calls of the message. */
static json_object *read_args(const runner_block_t *call, size_t *left,
                              apr_pool_t *pool)
{
    return agent_buffer_length(&call->text) == 0
        ? agent_json_own(json_object_new_object(), pool)
        : runner_raw_arguments(agent_buffer_text(&call->text),
                               agent_buffer_length(&call->text), left, pool);
}

static json_object *make_call_block(const runner_block_t *call,
                                    json_object *args)
{
    json_object *block = json_object_new_object();

    runner_value_add_text(block, "type", "tool_use");
    runner_value_add_text(block, "id", call->call_id);
    runner_value_add_text(block, "name", call->name);
    runner_value_add(block, "input",
                     args ? runner_value_share(args)
                          : json_object_new_object());
    return block;
}

/* Adds a call to the lists of the message, and to content if not NULL. */
static void add_call(json_object *message, json_object *content,
                     const runner_block_t *call, size_t *left, apr_pool_t *pool)
{
    json_object *args = read_args(call, left, pool);

    if (content != NULL) {
        json_object_array_add(content, make_call_block(call, args));
    }
    if (args != NULL) {
        json_object_array_add(agent_json_get(message, "tool_calls"),
                              runner_message_new_call(call->name,
                                                      runner_value_share(args),
                                                      call->call_id));
        return;
    }
    json_object_array_add(
        agent_json_get(message, "invalid_tool_calls"),
        runner_message_new_invalid_call(
            call->name,
            runner_clean_text(agent_buffer_text(&call->text),
                              agent_buffer_length(&call->text), NULL, pool),
            call->call_id, "The arguments are not a JSON object."));
}

static void add_member(json_object *object, const char *key, const char *text)
{
    if (text != NULL) {
        runner_value_add_text(object, key, text);
    }
}

static json_object *make_metadata(const runner_answer_t *answer,
                                  runner_answer_view_t view)
{
    bool is_cancelled = view == RUNNER_ANSWER_CANCELLED;
    json_object *metadata = json_object_new_object();

    add_member(metadata, "id", answer->response_id);
    add_member(metadata, "model_provider", answer->provider);
    add_member(metadata, "model_name", answer->model_name);
    add_member(metadata, "finish_reason", answer->finish_reason);
    add_member(metadata, "system_fingerprint", answer->fingerprint);
    runner_value_add_text(metadata, "stop_reason",
                          is_cancelled ? "interrupted" : answer->stop_reason);
    runner_value_add_text(metadata, "stop_sequence", answer->stop_sequence);
    if (is_cancelled) {
        runner_value_add_bool(metadata, "interrupted", true);
    }
    return metadata;
}

/* The texts joined, one reference. In a scratch pool: previews are made often,
 * and the answer's pool would keep every copy. */
static json_object *make_text(const runner_answer_t *answer)
{
    json_object *text;
    apr_pool_t *scratch;

    apr_pool_create(&scratch, answer->pool);
    text = runner_value_text(runner_answer_text(answer, scratch));
    apr_pool_destroy(scratch);
    return text;
}

json_object *runner_answer_message(const runner_answer_t *answer,
                                   runner_answer_view_t view)
{
    bool is_complete = view == RUNNER_ANSWER_COMPLETE;
    apr_pool_t *pool = answer->pool;
    json_object *message = runner_message_new("ai", NULL, answer->message_id);
    json_object *blocks = NULL;
    size_t left = RUNNER_VALUE_WEIGHT_MAX;

    if (answer->has_block_content && is_complete && answer->calls > 0) {
        blocks = runner_value_list();
    }
    runner_value_add(message, "content", blocks ? blocks : make_text(answer));
    runner_value_add(message, "response_metadata", make_metadata(answer, view));
    runner_value_add(message, "tool_calls", runner_value_list());
    runner_value_add(message, "invalid_tool_calls", runner_value_list());
    runner_value_add(
        message, "usage_metadata",
        runner_message_new_usage(answer->input_tokens, answer->output_tokens));
    for (int i = 0; i < answer->blocks->nelts; i++) {
        runner_block_t *block = get_block(answer, i);

        if (block->is_call && is_complete) {
            add_call(message, blocks, block, &left, pool);
        }
        else if (!block->is_call && blocks != NULL) {
            json_object_array_add(
                blocks,
                runner_message_new_text_block(agent_buffer_text(&block->text)));
        }
    }
    return message;
}
