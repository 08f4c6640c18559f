/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a body that was checked (schema.h). */
#ifndef AGENT_MODEL_FIELD_H
#define AGENT_MODEL_FIELD_H

#include <apr_tables.h>

#include "../core/raw.h"

/* The members of a body that its schema names, borrowed from the body's text.
 * NULL: a body without members. */
typedef struct agent_fields_t agent_fields_t;

/* Returns a member's value; NONE if it is absent or null. */
agent_raw_t agent_field_raw(const agent_fields_t *fields, const char *key);

/* Returns a member's text, in the pool of the check; fallback if it is not a
 * string. */
const char *agent_field_string(const agent_fields_t *fields, const char *key,
                               const char *fallback);

/* Returns a member's UUID in lower case, in the pool of the check; NULL if it
 * is not one. */
const char *agent_field_uuid(const agent_fields_t *fields, const char *key);

/* Returns the UUIDs of a member that was checked to be an array of them, as
 * const char * in lower case, in the pool of the check. */
apr_array_header_t *agent_field_uuids(const agent_fields_t *fields,
                                      const char *key);

#endif
