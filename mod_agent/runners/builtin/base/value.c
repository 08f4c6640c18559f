/* SPDX-License-Identifier: Apache-2.0 */
/* Building and reading json-c objects. */
#include "value.h"

#include "clean.h"
#include "core/json.h"
#include "core/scan.h"

json_object *runner_value_add(json_object *object, const char *key,
                              json_object *value)
{
    json_object_object_add(object, key, value);
    return object;
}

json_object *runner_value_text(const char *text)
{
    return text != NULL ? json_object_new_string(text) : NULL;
}

json_object *runner_value_add_text(json_object *object, const char *key,
                                   const char *text)
{
    return runner_value_add(object, key, runner_value_text(text));
}

json_object *runner_value_add_integer(json_object *object, const char *key,
                                      int64_t number)
{
    return runner_value_add(object, key, json_object_new_int64(number));
}

json_object *runner_value_add_bool(json_object *object, const char *key,
                                   bool value)
{
    return runner_value_add(object, key, json_object_new_boolean(value));
}

json_object *runner_value_wrap(const char *key, json_object *value)
{
    return runner_value_add(json_object_new_object(), key, value);
}

json_object *runner_value_list(void)
{
    return json_object_new_array();
}

json_object *runner_value_list_of(json_object *value)
{
    json_object *list = json_object_new_array_ext(1);

    json_object_array_add(list, value);
    return list;
}

json_object *runner_value_list_text(const char *text)
{
    return runner_value_list_of(json_object_new_string(text));
}

json_object *runner_value_copy(json_object *object)
{
    json_object *copy = json_object_new_object();

    if (json_object_is_type(object, json_type_object)) {
        json_object_object_foreach(object, key, value)
        {
            json_object_object_add(copy, key, json_object_get(value));
        }
    }
    return copy;
}

json_object *runner_value_share(json_object *value)
{
    return json_object_get(value);
}

size_t runner_value_count(json_object *list)
{
    return json_object_is_type(list, json_type_array)
        ? json_object_array_length(list)
        : 0;
}

const char *runner_value_item_text(json_object *list, size_t i)
{
    json_object *item = json_object_array_get_idx(list, i);

    return json_object_is_type(item, json_type_string)
        ? json_object_get_string(item)
        : "";
}

/* The recursion is bounded: the scan has refused values of more than
 * AGENT_SCAN_DEPTH levels. */
int runner_value_depth(json_object *value)
{
    int deepest = 0;

    if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value); i++) {
            int depth = runner_value_depth(json_object_array_get_idx(value, i));

            deepest = depth > deepest ? depth : deepest;
        }
        return deepest + 1;
    }
    if (json_object_is_type(value, json_type_object)) {
        json_object_object_foreach(value, key, member)
        {
            int depth = runner_value_depth(member);

            (void)key;
            deepest = depth > deepest ? depth : deepest;
        }
        return deepest + 1;
    }
    return 0;
}

size_t runner_value_weigh(const char *text, size_t length)
{
    /* Without a pool: duplicate keys are found when the text is parsed. */
    agent_scan_t scan = {.pool = NULL};

    agent_scan_json(&scan, text, length);
    return scan.weight;
}

apr_status_t runner_value_build(json_object **out, agent_raw_t text,
                                agent_error_t **err, apr_pool_t *pool)
{
    apr_pool_t *scratch;
    apr_status_t rv;

    apr_pool_create(&scratch, pool);
    rv = agent_json_parse_scanned(out, text.text, text.length, err, scratch);
    runner_value_share(*out);
    if (rv != APR_SUCCESS) {
        agent_error_set(err, (*err)->id, (*err)->detail, (*err)->cause, pool);
    }
    apr_pool_destroy(scratch);
    return rv;
}

/* In a scratch pool: cleaning takes several times the text. */
static json_object *parse_cleaned(const char *text, size_t length,
                                  bool keeps_surrogates, apr_pool_t *pool)
{
    json_object *value = NULL;
    agent_error_t *err = NULL;
    apr_pool_t *scratch;
    const char *cleaned;

    apr_pool_create(&scratch, pool);
    cleaned = runner_clean_json(text, length, keeps_surrogates, &length,
                                scratch);
    if (runner_value_weigh(cleaned, length) <= RUNNER_VALUE_WEIGHT_MAX
        && agent_json_parse(&value, cleaned, length, &err, scratch)
            == APR_SUCCESS) {
        agent_json_own(runner_value_share(value), pool);
    }
    else {
        value = NULL;
    }
    apr_pool_destroy(scratch);
    return value;
}

json_object *runner_value_parse(const char *text, size_t length,
                                apr_pool_t *pool)
{
    return parse_cleaned(text, length, false, pool);
}

json_object *runner_value_parse_event(const char *text, size_t length,
                                      apr_pool_t *pool)
{
    return parse_cleaned(text, length, true, pool);
}
