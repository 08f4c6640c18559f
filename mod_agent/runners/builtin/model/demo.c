/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demo model: no network, no key, a deterministic answer. It shows and
 * tests streaming, tools and interrupts. Commands in the last human message:
 *   sleep 2500       streams the answer over 2,500 ms
 *   use clock {}     calls that tool (once per command), then answers with the
 *                    results
 *   custom {"a": 1}  sends that object in stream mode custom before the answer
 *   fail             as the first word: the call fails
 * Any other message is answered with a description of the conversation. A token
 * is a word, also in usage_metadata.
 */
#include "demo.h"

#include <stdlib.h>
#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "core/clock.h"
#include "core/json.h"
#include "runners/builtin/base/raw.h"
#include "runners/builtin/base/text.h"
#include "runners/builtin/message/message.h"
#include "runners/builtin/message/lazy.h"

#define SLEEP_MAX_MS 600000
/* The most bytes of a message that an answer quotes. */
#define QUOTE_MAX 300

typedef struct demo_t {
    /* The words that are not sent yet, and their distribution over time. */
    const char *rest;
    int words;
    int words_sent;
    apr_time_t started_at;
    apr_interval_time_t duration;
} demo_t;

static size_t count_messages(const runner_call_t *call)
{
    return json_object_array_length(call->messages);
}

static json_object *get_message(const runner_call_t *call, size_t i)
{
    return json_object_array_get_idx(call->messages, i);
}

/* The index of the last human message before end, plus one; 0 for none. */
static size_t find_human(const runner_call_t *call, size_t end)
{
    while (end > 0 && !runner_message_is(get_message(call, end - 1), "human")) {
        end--;
    }
    return end;
}

static const char *get_text(runner_call_t *call, size_t i)
{
    return runner_message_text(get_message(call, i), call->pool);
}

static bool begins_word(const char *text, const char *at)
{
    return at == text || !apr_isalnum(at[-1]);
}

/* The text after the next `word` and its white space; NULL for none. */
static const char *find_word(const char *text, const char *at, const char *word)
{
    size_t length = strlen(word);

    for (; *at != '\0'; at++) {
        if (begins_word(text, at) && strncasecmp(at, word, length) == 0
            && apr_isspace(at[length])) {
            at += length;
            while (apr_isspace(*at)) {
                at++;
            }
            return at;
        }
    }
    return NULL;
}

static bool has_fail_command(const char *prompt)
{
    while (apr_isspace(*prompt)) {
        prompt++;
    }
    return strncasecmp(prompt, "fail", 4) == 0 && !apr_isalnum(prompt[4]);
}

/* Milliseconds of the first `sleep N`; 0 for none. */
static long find_sleep(const char *prompt)
{
    const char *at = prompt;

    while ((at = find_word(prompt, at, "sleep")) != NULL) {
        if (apr_isdigit(*at)) {
            long ms = strtol(at, NULL, 10);

            return ms > SLEEP_MAX_MS ? SLEEP_MAX_MS : ms;
        }
    }
    return 0;
}

/* Length of the JSON object at text; all of text when it is not closed. */
static size_t measure_object(const char *text)
{
    bool is_quoted = false;
    int depth = 0;
    size_t i;

    for (i = 0; text[i] != '\0'; i++) {
        if (is_quoted && text[i] == '\\' && text[i + 1] != '\0') {
            i++;
        }
        else if (text[i] == '"') {
            is_quoted = !is_quoted;
        }
        else if (!is_quoted && text[i] == '{') {
            depth++;
        }
        else if (!is_quoted && text[i] == '}' && --depth == 0) {
            return i + 1;
        }
    }
    return i;
}

static void send_object(runner_call_t *call, const char *text, size_t length)
{
    apr_pool_t *scratch;
    json_object *data;

    apr_pool_create(&scratch, call->pool);
    data = agent_json_own(
        runner_raw_value(runner_raw_read(text, length, scratch)), scratch);
    if (data != NULL) {
        runner_call_send_custom(call, data);
    }
    apr_pool_destroy(scratch);
}

/* Sends the object of every `custom {..}`. */
static void send_custom(runner_call_t *call, const char *prompt)
{
    const char *at = prompt;

    while ((at = find_word(prompt, at, "custom")) != NULL) {
        size_t length = *at == '{' ? measure_object(at) : 0;

        send_object(call, at, length);
        at += length;
    }
}

/* Finds the next `use NAME {..}` from *at on: sets name and args, moves *at
 * past it. */
static bool find_use(const char *prompt, const char **at, const char **name,
                     const char **args, apr_pool_t *pool)
{
    while ((*at = find_word(prompt, *at, "use")) != NULL) {
        const char *end = *at;
        const char *object;

        while (apr_isalnum(*end) || *end == '_' || *end == '-') {
            end++;
        }
        object = end;
        while (apr_isspace(*object)) {
            object++;
        }
        if (end > *at && *object == '{') {
            size_t length = measure_object(object);

            *name = apr_pstrmemdup(pool, *at, (apr_size_t)(end - *at));
            *args = apr_pstrmemdup(pool, object, length);
            *at = object + length;
            return true;
        }
    }
    return false;
}

/* Makes the tool calls that the prompt requests, up to the limit of an answer;
 * false when it requests none. */
static bool use_tools(runner_call_t *call, const char *prompt)
{
    const char *at = prompt;
    const char *name;
    const char *args;
    int count = 0;

    /* Bounded: RUNNER_ANSWER_CALLS_MAX. */
    while (at != NULL && call->answer.excess == NULL
           && find_use(prompt, &at, &name, &args, call->pool)) {
        const char *text = apr_pstrcat(
            call->pool, count == 0 ? "I ask the tool " : " and ", name, NULL);
        runner_block_t *block;

        runner_call_add_text(call, text, strlen(text));
        block = runner_call_begin_tool(call, count++, NULL, name);
        if (block != NULL) {
            runner_call_add_args(call, block, args, strlen(args));
        }
        call->answer.output_tokens += runner_text_count_words(text)
            + runner_text_count_words(name) + runner_text_count_words(args);
    }
    return count > 0;
}

static const char *quote(runner_call_t *call, const char *text)
{
    return apr_pstrcat(call->pool, "\"",
                       runner_text_shorten(text, QUOTE_MAX, call->pool), "\"",
                       NULL);
}

static void add_text(agent_buffer_t *buffer, const char *text)
{
    agent_buffer_append(buffer, text, strlen(text));
}

static void describe_result(agent_buffer_t *buffer, json_object *message,
                            apr_pool_t *pool)
{
    const char *name = runner_lazy_string(message, "name", "", pool);
    bool is_error = runner_lazy_equals(message, "status", "error");

    add_text(buffer,
             agent_buffer_length(buffer) > 0 ? " The tool " : "The tool ");
    add_text(buffer, name);
    add_text(buffer, is_error ? " failed: " : " answered: ");
    add_text(buffer, runner_message_text(message, pool));
}

/* Whether a tool has answered since the prompt. */
static bool has_results(const runner_call_t *call, size_t human)
{
    size_t i = human;

    while (i < count_messages(call)
           && !runner_message_is(get_message(call, i), "tool")) {
        i++;
    }
    return i < count_messages(call);
}

/* The results of the tools since the prompt. */
static const char *describe_results(runner_call_t *call, size_t human)
{
    agent_buffer_t text;

    agent_buffer_init(&text, call->pool);
    for (size_t i = human; i < count_messages(call); i++) {
        if (runner_message_is(get_message(call, i), "tool")) {
            describe_result(&text, get_message(call, i), call->pool);
        }
    }
    return agent_buffer_text(&text);
}

static const char *describe_tools(runner_call_t *call)
{
    const apr_array_header_t *tools = call->graph->tools;

    if (tools->nelts == 0) {
        return "";
    }
    return apr_pstrcat(
        call->pool,
        " My tools: ", runner_graph_list_tools(call->graph, call->pool),
        "; say \"use ", APR_ARRAY_IDX(tools, 0, runner_tool_t *)->name,
        " {}\" and I call one.", NULL);
}

/* A sentence that shows that the thread is persistent. */
static const char *describe_previous(runner_call_t *call, size_t human)
{
    size_t previous = human > 0 ? find_human(call, human - 1) : 0;

    if (previous == 0) {
        return "";
    }
    return apr_psprintf(call->pool,
                        " This is your message number %d in this thread; "
                        "before it you said %s.",
                        call->tally->humans,
                        quote(call, get_text(call, previous - 1)));
}

static const char *describe_self(runner_call_t *call, size_t human)
{
    const char *system = call->graph->system_prompt;
    const char *prompt = human > 0 ? get_text(call, human - 1) : "";

    return apr_pstrcat(
        call->pool, "I am the demo model: I have no thoughts of my own, but ",
        "the thread, the run and this stream are real. ",
        *prompt
            ? apr_psprintf(call->pool, "You said %s (%d words).",
                           quote(call, prompt), runner_text_count_words(prompt))
            : "You have said nothing yet.",
        describe_previous(call, human),
        system ? apr_pstrcat(call->pool, " My instructions are ",
                             quote(call, system), ".", NULL)
               : "",
        describe_tools(call),
        " Say \"sleep 2000\" and I take that many milliseconds to answer.",
        NULL);
}

static const char *compose_answer(runner_call_t *call, size_t human,
                                  long sleep_ms)
{
    if (has_results(call, human)) {
        return describe_results(call, human);
    }
    if (sleep_ms > 0) {
        return apr_psprintf(
            call->pool,
            "I am the demo model and I take %ld ms for this sentence, one "
            "word after the other, so that you can watch it arrive, or "
            "cancel the run half way and find in the state what you have "
            "seen until then.",
            sleep_ms);
    }
    return describe_self(call, human);
}

static int64_t count_input(runner_call_t *call)
{
    runner_tally_t *tally = call->tally;
    apr_pool_t *scratch;

    apr_pool_create(&scratch, call->pool);
    for (; tally->messages < count_messages(call); tally->messages++) {
        json_object *message = get_message(call, tally->messages);

        tally->words += runner_text_count_words(
            runner_message_text(message, scratch));
        tally->humans += runner_message_is(message, "human");
        apr_pool_clear(scratch);
    }
    apr_pool_destroy(scratch);
    return runner_text_count_words(call->graph->system_prompt) + tally->words;
}

static void end_call(runner_call_t *call, const char *stop_reason)
{
    call->answer.stop_reason = stop_reason;
    if (call->answer.excess != NULL) {
        runner_problem_set(&call->problem, call->pool, "DemoError",
                           "The demo model was asked for %s.",
                           call->answer.excess);
    }
    runner_call_end(call);
}

/* Sends the words that are due while the output is not blocked; ends the call
 * after the last one. */
static void wake_demo(runner_call_t *call)
{
    demo_t *demo = call->state;
    apr_interval_time_t elapsed = agent_clock_now() - demo->started_at;

    while (*demo->rest != '\0' && call->answer.excess == NULL
           && !call->is_full(call->baton)
           && elapsed * demo->words
               >= demo->duration * (demo->words_sent + 1)) {
        size_t length = runner_text_measure_word(demo->rest);

        demo->words_sent++;
        call->answer.output_tokens++;
        runner_call_add_text(call, demo->rest, length);
        demo->rest += length;
    }
    if (*demo->rest == '\0' || call->answer.excess != NULL) {
        end_call(call, "end_turn");
        return;
    }
    call->wake_at = demo->started_at
        + demo->duration * (demo->words_sent + 1) / demo->words + 1;
}

static void start_demo(runner_call_t *call)
{
    demo_t *demo = apr_pcalloc(call->pool, sizeof(*demo));
    size_t human = find_human(call, count_messages(call));
    const char *prompt = human > 0 ? get_text(call, human - 1) : "";
    long sleep_ms = find_sleep(prompt);

    call->state = demo;
    call->answer.has_block_content = true;
    call->answer.model_name = "demo";
    call->answer.input_tokens = count_input(call);
    if (has_fail_command(prompt)) {
        runner_problem_set(&call->problem, call->pool, "DemoError",
                           "The demo model failed because the last message "
                           "told it to: %s.",
                           quote(call, prompt));
        runner_call_end(call);
        return;
    }
    if (!has_results(call, human)) {
        send_custom(call, prompt);
        if (use_tools(call, prompt)) {
            end_call(call, "tool_use");
            return;
        }
    }
    demo->rest = compose_answer(call, human, sleep_ms);
    demo->words = runner_text_count_words(demo->rest);
    demo->started_at = agent_clock_now();
    demo->duration = apr_time_from_msec(sleep_ms);
    wake_demo(call);
}

const runner_provider_t runner_demo_provider = {"demo", false, start_demo,
                                                wake_demo};
