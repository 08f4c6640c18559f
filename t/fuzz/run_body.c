/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/ model/schema.c model/schema_checkpoint.c model/field.c */
/* OBJECTS: model/check.c */
/* Request bodies: the scan, json-c, and the checks of all fields. */
#include "fuzz.h"

#include <string.h>

#include "../../mod_agent/core/json.h"
#include "../../mod_agent/core/scan.h"
#include "../../mod_agent/model/schema.h"

/* json-c must parse every text that the scan accepts. */
static void compare_with_json_c(const char *text, size_t length)
{
    json_tokener *tokener = json_tokener_new_ex(AGENT_SCAN_DEPTH + 1);
    json_object *object = json_tokener_parse_ex(tokener, text, (int)length + 1);

    must(json_tokener_get_error(tokener) == json_tokener_success);
    json_object_put(object);
    json_tokener_free(tokener);
}

#define THREAD "01890000-0000-7000-8000-00000000000a"

typedef apr_status_t (*schema_t)(const agent_fields_t **, agent_raw_t,
                                 agent_error_t **, apr_pool_t *);

static void check_body(schema_t schema, const char *text, apr_pool_t *pool)
{
    const agent_fields_t *fields;
    agent_error_t *err = NULL;

    if (schema(&fields, agent_raw_read(text), &err, pool) != APR_SUCCESS) {
        must(err != NULL && err->detail != NULL);
    }
}

/* core/raw.c must find the members that json-c finds. */
static void compare_members(const char *text, json_object *body,
                            apr_pool_t *pool)
{
    const char *at = agent_raw_read(text).text;
    agent_member_t member;
    int count = 0;

    if (!json_object_is_type(body, json_type_object)) {
        return;
    }
    for (; agent_raw_member_next(&member, &at); count++) {
        must(json_object_object_get_ex(
            body, agent_raw_member_key(&member, pool), NULL));
    }
    must(count == json_object_object_length(body));
}

static void examine(const char *text, size_t length, apr_pool_t *pool)
{
    agent_scan_t scan;
    const agent_fields_t *const *runs;
    int count = 0;
    json_object *body = NULL;
    agent_error_t *err = NULL;

    memset(&scan, 0, sizeof(scan));
    if (agent_scan_json(&scan, text, length)) {
        must(scan.offset == length);
        compare_with_json_c(text, length);
    }
    else {
        must(scan.code != AGENT_SCAN_OK && scan.offset <= length);
        must(agent_scan_pointer(&scan, pool) != NULL);
    }
    if (agent_json_parse(&body, text, length, &err, pool) != APR_SUCCESS) {
        must(err != NULL && err->detail != NULL);
        return;
    }
    must(scan.code == AGENT_SCAN_OK);
    compare_members(text, body, pool);
    check_body(agent_schema_run, text, pool);
    if (agent_schema_state(agent_raw_read(text), THREAD, &err, pool)
        != APR_SUCCESS) {
        must(err != NULL && err->detail != NULL);
    }
    check_body(agent_schema_cancel, text, pool);
    check_body(agent_schema_thread, text, pool);
    check_body(agent_schema_assistants, text, pool);
    check_body(agent_schema_new_assistant, text, pool);
    if (agent_schema_version(&count, agent_raw_read(text), &err, pool)
        != APR_SUCCESS) {
        must(err != NULL && err->detail != NULL);
    }
    if (agent_schema_runs(&runs, &count, agent_raw_read(text), &err, pool)
        != APR_SUCCESS) {
        must(err != NULL && err->detail != NULL);
    }
}
