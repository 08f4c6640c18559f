/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of /store. */
#include "schema_private.h"

#include <string.h>

#include <apr_strings.h>

/* Labels of a namespace, and bytes of them together: an index holds them with a
 * key of 1,024 bytes. agent.read_namespace and agent.put_items check the same.
 */
#define NAMESPACE_LABELS 32
#define NAMESPACE_BYTES  1024
#define KEY_BYTES        1024
#define VALUE_BYTES      1048576
/* Of a filter, which is applied to each item that a search examines;
 * agent.split_filter checks the same. */
#define FILTER_BYTES      16384
#define FILTER_CONDITIONS 32

/* The length of a label; 0: it is not one. */
static apr_size_t measure_label(agent_raw_t label, apr_pool_t *pool)
{
    apr_size_t length = agent_raw_string_length(label);

    return agent_raw_kind(label) == AGENT_RAW_STRING
            && length <= NAMESPACE_BYTES
            && strchr(agent_raw_string(label, pool), '.') == NULL
        ? length
        : 0;
}

static apr_status_t check_labels(agent_raw_t labels,
                                 const agent_check_path_t *path)
{
    const char *at = labels.text;
    apr_size_t bytes = 0;
    agent_raw_t label;

    for (int i = 0; agent_raw_element_next(&label, &at); i++) {
        agent_check_path_t below = agent_check_path_at(path, i);
        apr_size_t length = i < NAMESPACE_LABELS
            ? measure_label(label, path->pool)
            : 1;

        if (length == 0) {
            return agent_check_refuse(&below,
                                      "a label: a string that is not empty and "
                                      "contains no period");
        }
        bytes += length;
        if (i == NAMESPACE_LABELS || bytes > NAMESPACE_BYTES) {
            return agent_check_refuse(path,
                                      "at most 32 labels, of 1024 bytes "
                                      "together");
        }
    }
    return APR_SUCCESS;
}

/* low: the smallest number of labels. */
static apr_status_t check_namespace(const agent_check_t *check,
                                    agent_raw_t value,
                                    const agent_check_path_t *path)
{
    const char *at = value.text;
    agent_raw_t first;

    if (agent_raw_kind(value) != AGENT_RAW_ARRAY) {
        return agent_check_refuse(path, "an array of labels");
    }
    if (check->low > 0 && !agent_raw_element_next(&first, &at)) {
        return agent_check_refuse(path, "an array of 1 to 32 labels");
    }
    return check_labels(value, path);
}

static apr_status_t check_value(const agent_check_t *check, agent_raw_t value,
                                const agent_check_path_t *path)
{
    return agent_raw_kind(value) == AGENT_RAW_OBJECT
            && value.length <= VALUE_BYTES
        ? APR_SUCCESS
        : agent_check_refuse(path, "an object of at most 1048576 bytes");
}

/* `index` names the members of a value to index: it is checked and ignored,
 * since there is no such index. */
static apr_status_t check_index(const agent_check_t *check, agent_raw_t value,
                                const agent_check_path_t *path)
{
    return agent_raw_kind(value) == AGENT_RAW_BOOLEAN && *value.text == 'f'
        ? APR_SUCCESS
        : agent_check_texts(check, value, path);
}

static bool is_operator(const agent_member_t *member)
{
    static const char *const operators[] = {"$eq",  "$ne", "$gt",
                                            "$gte", "$lt", "$lte"};

    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        if (agent_raw_member_is(member, operators[i])) {
            return true;
        }
    }
    return false;
}

/* A member of a filter is a value, or an object of operators: then all of its
 * names are operators. Adds its conditions to *count. */
static apr_status_t check_condition(int *count, agent_raw_t value,
                                    const agent_check_path_t *path)
{
    const char *at = value.text;
    agent_member_t member;
    bool has_dollar = false;
    bool has_other = false;
    int members = 0;

    while (agent_raw_kind(value) == AGENT_RAW_OBJECT
           && agent_raw_member_next(&member, &at)) {
        has_dollar = has_dollar
            || *agent_raw_member_key(&member, path->pool) == '$';
        has_other = has_other || !is_operator(&member);
        members++;
    }
    *count += has_dollar ? members : 1;
    return !has_dollar || !has_other
        ? APR_SUCCESS
        : agent_check_refuse(path,
                             "the operators $eq, $ne, $gt, $gte, $lt, $lte "
                             "only");
}

static apr_status_t check_filter(const agent_check_t *check, agent_raw_t value,
                                 const agent_check_path_t *path)
{
    const char *at = value.text;
    agent_member_t member;
    int count = 0;

    if (agent_raw_kind(value) != AGENT_RAW_OBJECT
        || value.length > FILTER_BYTES) {
        return agent_check_refuse(path, "an object of at most 16384 bytes");
    }
    while (agent_raw_member_next(&member, &at)) {
        agent_raw_t raw = {member.value, member.value_length};
        agent_check_path_t below = agent_check_path_below(
            path, agent_raw_member_key(&member, path->pool));

        if (check_condition(&count, raw, &below) != APR_SUCCESS) {
            return APR_EGENERAL;
        }
    }
    return count <= FILTER_CONDITIONS
        ? APR_SUCCESS
        : agent_check_refuse(path, "at most 32 conditions");
}

/* The members that name an item. */
#define ITEM_MEMBERS                                                           \
    {.key = "namespace",                                                       \
     .required = true,                                                         \
     .check = check_namespace,                                                 \
     .low = 1},                                                                \
    {                                                                          \
        .key = "key", .required = true, .check = agent_check_text, .low = 1,   \
        .high = KEY_BYTES                                                      \
    }

/* The members of a search and of a list that select a part. */
#define PART_MEMBERS                                                           \
    {.key = "limit", .check = agent_check_integer, .low = 1, .high = 1000},    \
    {                                                                          \
        .key = "offset", .check = agent_check_integer, .low = 0,               \
        .high = 2147480000                                                     \
    }

static const agent_check_t put_members[] = {
    ITEM_MEMBERS,
    {.key = "value", .required = true, .check = check_value},
    {.key = "index", .check = check_index},
    {.key = "ttl", .check = agent_check_minutes},
    {.key = NULL}};

static const agent_check_t delete_members[] = {ITEM_MEMBERS, {.key = NULL}};

static const agent_check_t search_members[] = {
    {.key = "namespace_prefix", .check = check_namespace},
    {.key = "filter", .check = check_filter},
    {.key = "query", .check = agent_check_text, .high = 65536},
    {.key = "refresh_ttl", .check = agent_check_flag},
    PART_MEMBERS,
    {.key = NULL}};

static const agent_check_t list_members[] = {
    {.key = "prefix", .check = check_namespace},
    {.key = "suffix", .check = check_namespace},
    {.key = "max_depth", .check = agent_check_integer, .low = 1, .high = 1000},
    PART_MEMBERS,
    {.key = NULL}};

/* In the order of agent_store_body_t. */
static const agent_check_t *const bodies[] = {put_members, delete_members,
                                              search_members, list_members};

apr_status_t agent_schema_store(agent_store_body_t kind, agent_raw_t body,
                                agent_error_t **err, apr_pool_t *pool)
{
    agent_check_path_t path = {.err = err, .pool = pool};
    const agent_fields_t *fields;

    return agent_schema_check_body(&fields, bodies[kind], body, &path);
}

/* The query string joins the labels with periods. */
bool agent_schema_is_namespace(const char *labels)
{
    apr_size_t bytes = 0;
    int count = 0;

    for (const char *at = labels; at != NULL; count++) {
        apr_size_t length = strcspn(at, ".");

        if (length == 0) {
            return false;
        }
        bytes += length;
        at = at[length] == '.' ? at + length + 1 : NULL;
    }
    return count <= NAMESPACE_LABELS && bytes <= NAMESPACE_BYTES;
}

bool agent_schema_is_item_key(const char *key)
{
    return *key != '\0' && strlen(key) <= KEY_BYTES;
}
