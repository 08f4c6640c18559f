/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that stay text until their members are needed. */
#include "stored.h"

#include <string.h>

#include <json-c/printbuf.h>

#include "core/json.h"
#include "runners/builtin/base/value.h"

/*
 * The content of a stored message: a string, its text, or the tree that was
 * built of it; NULL for any other value. The message itself is a boolean, which
 * takes the least memory; json-c gives no boolean of its own user data.
 */
static json_object *get_content(json_object *message)
{
    return json_object_is_type(message, json_type_boolean)
        ? json_object_get_userdata(message)
        : NULL;
}

static int print_text(json_object *message, struct printbuf *out, int level,
                      int flags)
{
    json_object *text = get_content(message);

    (void)level;
    (void)flags;
    return printbuf_memappend(out, json_object_get_string(text),
                              json_object_get_string_len(text));
}

/* json-c keeps what it prints for the lifetime of the object: a copy is printed
 * and freed. */
static int print_tree(json_object *message, struct printbuf *out, int level,
                      int flags)
{
    json_object *copy = runner_value_copy(get_content(message));
    size_t length;
    const char *text = json_object_to_json_string_length(copy, flags, &length);
    int printed = printbuf_memappend(out, text, (int)length);

    (void)level;
    json_object_put(copy);
    return printed;
}

static void release_content(json_object *message, void *content)
{
    (void)message;
    json_object_put(content);
}

json_object *runner_stored_make(agent_raw_t text)
{
    json_object *message = json_object_new_boolean(true);

    json_object_set_serializer(
        message, print_text,
        json_object_new_string_len(text.text, (int)text.length),
        release_content);
    return message;
}

agent_raw_t runner_stored_text(json_object *message)
{
    json_object *text = get_content(message);

    return json_object_is_type(text, json_type_string)
        ? (agent_raw_t){json_object_get_string(text),
                        (apr_size_t)json_object_get_string_len(text)}
        : (agent_raw_t){NULL, 0};
}

/* The object with the members, unless the message is still text. */
static json_object *get_tree(json_object *message)
{
    json_object *content = get_content(message);

    return content != NULL ? content : message;
}

bool runner_stored_equals(json_object *message, const char *key,
                          const char *text)
{
    agent_raw_t stored = runner_stored_text(message);
    const char *value;

    if (stored.length > 0) {
        return agent_raw_equals(agent_raw_get(stored, key), text);
    }
    value = agent_json_string(get_tree(message), key, NULL);
    return value != NULL && strcmp(value, text) == 0;
}

bool runner_stored_has_text(json_object *message, const char *key)
{
    agent_raw_t stored = runner_stored_text(message);
    agent_raw_t value = agent_raw_get(stored, key);

    return stored.length > 0
        ? agent_raw_kind(value) == AGENT_RAW_STRING && value.length > 2
        : *agent_json_string(get_tree(message), key, "") != '\0';
}

const char *runner_stored_string(json_object *message, const char *key,
                                 apr_pool_t *pool)
{
    agent_raw_t stored = runner_stored_text(message);

    return stored.length > 0
        ? agent_raw_string(agent_raw_get(stored, key), pool)
        : agent_json_string(get_tree(message), key, NULL);
}

/* One reference. The text has passed the scan, so that it can be parsed. */
static json_object *build_tree(agent_raw_t text, apr_pool_t *pool)
{
    agent_error_t *err = NULL;
    json_object *tree;
    apr_pool_t *scratch;

    apr_pool_create(&scratch, pool);
    agent_json_parse_scanned(&tree, text.text, text.length, &err, scratch);
    runner_value_share(tree);
    apr_pool_destroy(scratch);
    return tree;
}

json_object *runner_stored_open(json_object *message, apr_pool_t *pool)
{
    agent_raw_t text = runner_stored_text(message);

    if (text.length > 0) {
        json_object_set_serializer(message, print_tree, build_tree(text, pool),
                                   release_content);
    }
    return get_tree(message);
}
