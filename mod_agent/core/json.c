/* SPDX-License-Identifier: Apache-2.0 */
/* json-c with objects owned by pools, after the strict scan. */
#include "json.h"

#include <string.h>

#include <apr_strings.h>

#include "scan.h"

static apr_status_t release_object(void *object)
{
    json_object_put(object);
    return APR_SUCCESS;
}

json_object *agent_json_own(json_object *object, apr_pool_t *pool)
{
    if (object != NULL) {
        apr_pool_cleanup_register(pool, object, release_object,
                                  apr_pool_cleanup_null);
    }
    return object;
}

static apr_status_t refuse_scan(const agent_scan_t *scan, agent_error_t **err,
                                apr_pool_t *pool)
{
    const char *pointer;

    if (scan->code == AGENT_SCAN_SYNTAX || scan->code == AGENT_SCAN_UTF8) {
        return agent_error_setf(err, AGENT_E_INVALID_JSON, pool,
                                "The body %s (byte %" APR_SIZE_T_FMT ").",
                                agent_scan_reason(scan->code), scan->offset);
    }
    pointer = agent_scan_pointer(scan, pool);
    return agent_error_setf(err,
                            scan->code == AGENT_SCAN_NUL ? AGENT_E_NUL_CHARACTER
                                                         : AGENT_E_INVALID,
                            pool, "%s: %s.", *pointer ? pointer : "/",
                            agent_scan_reason(scan->code));
}

apr_status_t agent_json_scan_request(const char *text, apr_size_t length,
                                     agent_error_t **err, apr_pool_t *pool)
{
    agent_scan_t scan = {.is_request = true,
                         .max_weight = AGENT_SCAN_REQUEST_WEIGHT,
                         .pool = pool};

    return agent_scan_json(&scan, text, length) ? APR_SUCCESS
                                                : refuse_scan(&scan, err, pool);
}

apr_status_t agent_json_parse(json_object **out, const char *text,
                              apr_size_t length, agent_error_t **err,
                              apr_pool_t *pool)
{
    size_t weight;

    *out = NULL;
    return agent_json_scan(&weight, text, length, err, pool) == APR_SUCCESS
        ? agent_json_parse_scanned(out, text, length, err, pool)
        : APR_EGENERAL;
}

apr_status_t agent_json_scan(size_t *weight, const char *text,
                             apr_size_t length, agent_error_t **err,
                             apr_pool_t *pool)
{
    agent_scan_t scan = {.pool = pool};
    bool good = agent_scan_json(&scan, text, length);

    *weight = scan.weight;
    return good ? APR_SUCCESS : refuse_scan(&scan, err, pool);
}

apr_status_t agent_json_parse_scanned(json_object **out, const char *text,
                                      apr_size_t length, agent_error_t **err,
                                      apr_pool_t *pool)
{
    json_tokener *tokener = json_tokener_new_ex(AGENT_SCAN_DEPTH + 2);
    enum json_tokener_error problem;

    /* The terminating NUL ends a number for the tokener. */
    *out = json_tokener_parse_ex(tokener, text, (int)length + 1);
    problem = json_tokener_get_error(tokener);
    json_tokener_free(tokener);
    agent_json_own(*out, pool);
    if (problem != json_tokener_success) {
        return agent_error_set(err, AGENT_E_INVALID_JSON, NULL,
                               json_tokener_error_desc(problem), pool);
    }
    return APR_SUCCESS;
}

json_object *agent_json_get(json_object *object, const char *key)
{
    json_object *value = NULL;

    if (!json_object_is_type(object, json_type_object)) {
        return NULL;
    }
    json_object_object_get_ex(object, key, &value);
    return value;
}

const char *agent_json_string(json_object *object, const char *key,
                              const char *fallback)
{
    json_object *value = agent_json_get(object, key);

    return json_object_is_type(value, json_type_string)
        ? json_object_get_string(value)
        : fallback;
}

int64_t agent_json_integer(json_object *object, const char *key,
                           int64_t fallback)
{
    json_object *value = agent_json_get(object, key);

    return json_object_is_type(value, json_type_int)
        ? json_object_get_int64(value)
        : fallback;
}

const char *agent_json_print(json_object *object, apr_pool_t *pool)
{
    return apr_pstrdup(
        pool,
        json_object_to_json_string_ext(
            object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
}

const char *agent_json_quote(const char *text, apr_pool_t *pool)
{
    json_object *value;
    const char *quoted;

    if (text == NULL) {
        return "null";
    }
    value = json_object_new_string(text);
    quoted = agent_json_print(value, pool);
    json_object_put(value);
    return quoted;
}
