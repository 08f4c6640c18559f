/* SPDX-License-Identifier: Apache-2.0 */
/* JSON that stays text. */
#include "raw.h"

#include <string.h>

#include <apr_strings.h>
#include <json-c/printbuf.h>

#include "clean.h"
#include "core/json.h"
#include "core/scan.h"
#include "value.h"

/* The memory of a raw value without its text. */
#define RAW_WEIGHT (AGENT_SCAN_WEIGHT_OBJECT + AGENT_SCAN_WEIGHT_SCALAR)

/* Copies valid JSON text without the white space between its tokens: a line has
 * no newline in it. Returns the length; *depth is the nesting depth. */
static size_t compact(char *out, const char *text, size_t length, int *depth)
{
    bool is_quoted = false;
    size_t count = 0;
    int level = 0;

    *depth = 0;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];

        if (!is_quoted && strchr(" \t\r\n", c) != NULL) {
            continue;
        }
        out[count++] = c;
        if (is_quoted && c == '\\') {
            out[count++] = text[++i];
        }
        else if (c == '"') {
            is_quoted = !is_quoted;
        }
        else if (!is_quoted && (c == '{' || c == '[')) {
            level++;
            *depth = level > *depth ? level : *depth;
        }
        else if (!is_quoted && (c == '}' || c == ']')) {
            level--;
        }
    }
    out[count] = '\0';
    return count;
}

/* *weight is the memory of the tree. In a scratch pool: cleaning takes several
 * times the text. */
static agent_raw_t read_value(const char *text, size_t length, size_t *weight,
                              apr_pool_t *pool)
{
    agent_raw_t value = {NULL, 0};
    agent_scan_t scan = {.code = AGENT_SCAN_OK};
    apr_pool_t *scratch;
    const char *cleaned;
    char *copy;
    int depth;

    apr_pool_create(&scratch, pool);
    scan.pool = scratch;
    cleaned = runner_clean_json(text, length, false, &length, scratch);
    if (agent_scan_json(&scan, cleaned, length)) {
        copy = apr_palloc(pool, length + 1);
        length = compact(copy, cleaned, length, &depth);
        if (depth <= RUNNER_VALUE_DEPTH) {
            value = (agent_raw_t){copy, length};
        }
    }
    apr_pool_destroy(scratch);
    *weight = scan.weight;
    return value;
}

agent_raw_t runner_raw_read(const char *text, size_t length, apr_pool_t *pool)
{
    size_t weight;

    return read_value(text, length, &weight, pool);
}

static int print_text(json_object *object, struct printbuf *out, int level,
                      int flags)
{
    json_object *text = json_object_get_userdata(object);

    return printbuf_memappend(out, json_object_get_string(text),
                              json_object_get_string_len(text));
}

static void release_text(json_object *object, void *text)
{
    json_object_put(text);
}

json_object *runner_raw_value(agent_raw_t value)
{
    json_object *object;

    if (agent_raw_kind(value) == AGENT_RAW_NONE) {
        return NULL;
    }
    object = json_object_new_object();
    json_object_set_serializer(
        object, print_text,
        json_object_new_string_len(value.text, (int)value.length),
        release_text);
    return object;
}

json_object *runner_raw_arguments(const char *text, size_t length, size_t *left,
                                  apr_pool_t *pool)
{
    json_object *object = NULL;
    apr_pool_t *scratch;
    agent_raw_t value;
    size_t weight;

    apr_pool_create(&scratch, pool);
    value = read_value(text, length, &weight, scratch);
    if (agent_raw_kind(value) == AGENT_RAW_OBJECT && weight <= *left) {
        object = agent_json_own(runner_raw_value(value), pool);
        *left -= weight;
    }
    apr_pool_destroy(scratch);
    return object;
}

const char *runner_raw_print(agent_raw_t value, apr_pool_t *pool)
{
    const char *text = agent_raw_string(value, pool);

    return text != NULL ? text : apr_pstrmemdup(pool, value.text, value.length);
}

static json_object *get_text(json_object *value)
{
    return json_object_is_type(value, json_type_object)
        ? json_object_get_userdata(value)
        : NULL;
}

/* json-c keeps the printed text for the lifetime of the object: a copy is
 * printed and freed. */
static const char *print_copy(json_object *object, apr_pool_t *pool)
{
    json_object *copy = runner_value_copy(object);
    const char *text = agent_json_print(copy, pool);

    json_object_put(copy);
    return text;
}

const char *runner_raw_text(json_object *object, apr_pool_t *pool)
{
    json_object *text = get_text(object);

    return text != NULL ? json_object_get_string(text)
                        : print_copy(object, pool);
}

const char *runner_raw_string(json_object *object, const char *key,
                              apr_pool_t *pool)
{
    json_object *text = get_text(object);

    return text == NULL
        ? agent_json_string(object, key, NULL)
        : agent_raw_string(
            agent_raw_get(agent_raw_read(json_object_get_string(text)), key),
            pool);
}

size_t runner_raw_excess(json_object *value)
{
    json_object *text = get_text(value);
    size_t length;
    size_t weight;

    if (text == NULL) {
        return 0;
    }
    length = (size_t)json_object_get_string_len(text);
    weight = runner_value_weigh(json_object_get_string(text), length);
    return weight > length + RAW_WEIGHT ? weight - length - RAW_WEIGHT : 0;
}
