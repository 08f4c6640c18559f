/* SPDX-License-Identifier: Apache-2.0 */
/* Reading parts of a state. */
#include "part.h"

#include <string.h>

#include <apr_strings.h>

#include "core/json.h"
#include "runners/builtin/base/value.h"
#include "runners/builtin/message/stored.h"

apr_status_t runner_part_read_line(json_object **line, agent_raw_t *result,
                                   const char *text, size_t length,
                                   agent_error_t **err, apr_pool_t *pool)
{
    size_t space = strspn(text, " \t\r\n");
    /* Not agent_raw_read(), which walks over the whole line. */
    agent_raw_t all = {text + space, length - space};
    const char *rest;

    *result = agent_raw_equals(agent_raw_get(all, "type"), "reply")
        ? agent_raw_get(all, "result")
        : (agent_raw_t){NULL, 0};
    if (result->length == 0) {
        return agent_json_parse_scanned(line, text, length, err, pool);
    }
    rest = apr_pstrcat(
        pool, apr_pstrmemdup(pool, text, (apr_size_t)(result->text - text)),
        "null", result->text + result->length, NULL);
    return agent_json_parse_scanned(line, rest, strlen(rest), err, pool);
}

/* The value of a member of that name if it is the only one; length 0
 * otherwise. */
static agent_raw_t get_only(agent_raw_t value, const char *name)
{
    const char *at = value.text;
    agent_raw_t none = {NULL, 0};
    agent_member_t member;
    agent_member_t other;

    if (agent_raw_kind(value) != AGENT_RAW_OBJECT
        || !agent_member_next(&member, &at) || !agent_member_is(&member, name)
        || agent_member_next(&other, &at)) {
        return none;
    }
    return (agent_raw_t){member.value, member.value_length};
}

/* A tree of a value, which belongs to pool; the scan has validated it. */
static json_object *build_tree(agent_raw_t value, apr_pool_t *pool)
{
    agent_error_t *err = NULL;
    json_object *tree = NULL;

    agent_json_parse_scanned(&tree, value.text, value.length, &err, pool);
    return tree;
}

/* Appends messages; false when one is not an object, and then none. */
static bool append_messages(json_object *list, const char *items)
{
    size_t before = json_object_array_length(list);
    agent_raw_t item;

    while (agent_element_next(&item, &items)) {
        if (agent_raw_kind(item) != AGENT_RAW_OBJECT) {
            size_t added = json_object_array_length(list) - before;

            if (added > 0) {
                json_object_array_del_idx(list, before, added);
            }
            return false;
        }
        json_object_array_add(list, runner_stored_make(item));
    }
    return true;
}

static void append_trees(json_object *list, agent_raw_t items, apr_pool_t *pool)
{
    json_object *trees = build_tree(items, pool);

    for (size_t i = 0; i < runner_value_count(trees); i++) {
        json_object_array_add(
            list, runner_value_share(json_object_array_get_idx(trees, i)));
    }
}

/* Whether value is the number of elements of the list. */
static bool is_length(agent_raw_t value, json_object *list)
{
    char length[32];

    apr_snprintf(length, sizeof(length), "%" APR_SIZE_T_FMT,
                 (apr_size_t)json_object_array_length(list));
    return value.length == strlen(length)
        && memcmp(value.text, length, value.length) == 0;
}

/* Appends the elements of a part of a list. */
static bool append_items(runner_run_t *run, const char *name, agent_raw_t part,
                         apr_pool_t *pool)
{
    const char *items = agent_member_find(part.text, "items");
    json_object *list = agent_json_get(run->values, name);

    if (list == NULL) {
        list = runner_value_list();
        runner_value_add(run->values, name, list);
    }
    if (*items != '[' || !json_object_is_type(list, json_type_array)
        || !is_length(agent_raw_get(part, "keep"), list)) {
        return false;
    }
    if (strcmp(name, "messages") != 0 || !append_messages(list, items)) {
        append_trees(list, agent_raw_read(items), pool);
    }
    return true;
}

static bool add_channel(runner_run_t *run, const agent_member_t *member,
                        apr_pool_t *pool)
{
    agent_raw_t value = {member->value, member->value_length};
    agent_raw_t part = get_only(value, "$list");
    const char *name = agent_member_key(member, pool);

    if (part.length > 0) {
        return append_items(run, name, part, pool);
    }
    part = get_only(value, "$value");
    runner_value_add(
        run->values, name,
        runner_value_share(build_tree(part.length > 0 ? part : value, pool)));
    return true;
}

bool runner_part_add(runner_run_t *run, agent_raw_t result)
{
    const char *at = result.length > 0
        ? agent_member_find(result.text, "values")
        : "";
    bool is_part = *at == '{';
    agent_member_t member;
    apr_pool_t *scratch;

    apr_pool_create(&scratch, run->pool);
    while (is_part && agent_member_next(&member, &at)) {
        is_part = add_channel(run, &member, scratch);
    }
    apr_pool_destroy(scratch);
    return is_part;
}
