/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a body; see field.h. */
#include "field.h"

#include <string.h>

#include <apr_strings.h>

#include "../core/uuid.h"
#include "schema_private.h"

struct agent_fields_t {
    const agent_check_t *members;
    /* One for each row of members. */
    agent_raw_t *values;
    apr_pool_t *pool;
};

agent_raw_t agent_field_raw(const agent_fields_t *fields, const char *key)
{
    for (int i = 0; fields != NULL && fields->members[i].key != NULL; i++) {
        if (strcmp(fields->members[i].key, key) == 0) {
            return fields->values[i];
        }
    }
    return (agent_raw_t){NULL, 0};
}

const char *agent_field_string(const agent_fields_t *fields, const char *key,
                               const char *fallback)
{
    agent_raw_t value = agent_field_raw(fields, key);

    return agent_raw_kind(value) == AGENT_RAW_STRING
        ? agent_raw_string(value, fields->pool)
        : fallback;
}

static const char *read_uuid(agent_raw_t value, apr_pool_t *pool)
{
    char id[AGENT_UUID_SIZE];

    return agent_raw_kind(value) == AGENT_RAW_STRING
            && agent_uuid_parse(id, agent_raw_string(value, pool))
        ? apr_pstrdup(pool, id)
        : NULL;
}

const char *agent_field_uuid(const agent_fields_t *fields, const char *key)
{
    return fields != NULL
        ? read_uuid(agent_field_raw(fields, key), fields->pool)
        : NULL;
}

apr_array_header_t *agent_field_uuids(const agent_fields_t *fields,
                                      const char *key)
{
    apr_array_header_t *ids = apr_array_make(fields->pool, 16,
                                             sizeof(const char *));
    const char *at = agent_field_raw(fields, key).text;
    agent_raw_t value;

    while (agent_raw_element_next(&value, &at)) {
        APR_ARRAY_PUSH(ids, const char *) = read_uuid(value, fields->pool);
    }
    return ids;
}

apr_status_t agent_schema_check_body(const agent_fields_t **out,
                                     const agent_check_t *members,
                                     agent_raw_t body,
                                     const agent_check_path_t *path)
{
    agent_fields_t *fields = apr_palloc(path->pool, sizeof(*fields));
    apr_size_t count = 0;

    if (agent_raw_kind(body) != AGENT_RAW_OBJECT) {
        return agent_check_refuse(path, "an object");
    }
    while (members[count].key != NULL) {
        count++;
    }
    fields->members = members;
    fields->values = apr_pcalloc(path->pool, count * sizeof(agent_raw_t));
    fields->pool = path->pool;
    *out = fields;
    agent_check_find(fields->values, members, body);
    return agent_check_members(members, fields->values, path);
}

apr_status_t agent_schema_refuse(const agent_check_path_t *path,
                                 const char *key, const char *expected)
{
    agent_check_path_t member = agent_check_path_below(path, key);

    return agent_check_refuse(&member, expected);
}
