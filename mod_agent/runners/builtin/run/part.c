/* SPDX-License-Identifier: Apache-2.0 */
/* Reading parts of a state. */
#include "part.h"

#include <string.h>

#include "core/json.h"
#include "core/raw.h"
#include "runners/builtin/base/value.h"
#include "runners/builtin/message/lazy.h"

/* The members that lead to the messages of a reply. */
static const char *const messages_path[] = {"result", "values", "messages",
                                            "$list",  "items",  NULL};

typedef struct reader_t {
    /* After what has been read. */
    const char *at;
    apr_pool_t *pool;
    apr_status_t rv;
    agent_error_t **err;
} reader_t;

/* The caller gets one reference, as of the functions below. */
static json_object *read_tree(reader_t *reader)
{
    agent_raw_t value = agent_raw_read(reader->at);
    json_object *tree;
    apr_status_t rv = runner_value_build(&tree, value, reader->err,
                                         reader->pool);

    reader->rv = rv != APR_SUCCESS ? rv : reader->rv;
    reader->at = value.text + value.length;
    return tree;
}

/* Elements that are not objects become trees. */
static json_object *read_messages(reader_t *reader)
{
    json_object *list = runner_value_list();
    const char *element;

    while (*(element = agent_raw_element_find(reader->at)) != '\0') {
        reader->at = element;
        json_object_array_add(list,
                              *element == '{' ? runner_lazy_read(&reader->at)
                                              : read_tree(reader));
    }
    reader->at = agent_raw_end(reader->at);
    return list;
}

/*
 * Reads an object, of which the members of path lead to messages. No value is
 * walked over before it is read, so that a part is read once. Recursion is
 * bounded by the path.
 */
static json_object *read_path(reader_t *reader, const char *const *path)
{
    json_object *object;
    agent_member_t member;

    if (*path == NULL && *reader->at == '[') {
        return read_messages(reader);
    }
    if (*path == NULL || *reader->at != '{') {
        return read_tree(reader);
    }
    object = json_object_new_object();
    while (agent_raw_member_begin(&member, &reader->at)) {
        runner_value_add(object, agent_raw_member_key(&member, reader->pool),
                         agent_raw_member_is(&member, *path)
                             ? read_path(reader, path + 1)
                             : read_tree(reader));
    }
    reader->at = agent_raw_end(reader->at);
    return object;
}

apr_status_t runner_part_read_line(json_object **line, const char *text,
                                   size_t length, agent_error_t **err,
                                   apr_pool_t *pool)
{
    size_t space = strspn(text, " \t\r\n");
    /* Not agent_raw_read(), which walks over the whole line. */
    agent_raw_t all = {text + space, length - space};
    reader_t reader = {
        .at = all.text, .pool = pool, .rv = APR_SUCCESS, .err = err};

    if (!agent_raw_equals(agent_raw_get(all, "type"), "reply")) {
        return agent_json_parse_scanned(line, text, length, err, pool);
    }
    *line = agent_json_own(read_path(&reader, messages_path), pool);
    return reader.rv;
}

/* Whether an object has that member only; *only is its value. */
static bool get_only(json_object **only, json_object *value, const char *name)
{
    return json_object_is_type(value, json_type_object)
        && json_object_object_length(value) == 1
        && json_object_object_get_ex(value, name, only);
}

/* Appends the elements of a part of a list. */
static bool append_items(runner_run_t *run, const char *name, json_object *part)
{
    json_object *items = agent_json_get(part, "items");
    json_object *list = agent_json_get(run->values, name);
    bool is_list = list == NULL || json_object_is_type(list, json_type_array);

    if (!is_list || !json_object_is_type(items, json_type_array)
        || agent_json_integer(part, "keep", -1)
            != (int64_t)runner_value_count(list)) {
        return false;
    }
    if (list == NULL) {
        runner_value_add(run->values, name, runner_value_share(items));
        return true;
    }
    for (size_t i = 0; i < json_object_array_length(items); i++) {
        json_object_array_add(
            list, runner_value_share(json_object_array_get_idx(items, i)));
    }
    return true;
}

static bool add_channel(runner_run_t *run, const char *name, json_object *value)
{
    json_object *part = NULL;

    if (get_only(&part, value, "$list")) {
        return append_items(run, name, part);
    }
    if (get_only(&part, value, "$value")) {
        value = part;
    }
    runner_value_add(run->values, name, runner_value_share(value));
    return true;
}

bool runner_part_add(runner_run_t *run, json_object *result)
{
    json_object *values = agent_json_get(result, "values");
    bool is_part = json_object_is_type(values, json_type_object);

    if (is_part) {
        json_object_object_foreach(values, name, value)
        {
            is_part = is_part && add_channel(run, name, value);
        }
    }
    return is_part;
}
