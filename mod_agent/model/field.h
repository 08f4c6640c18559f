/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a body that was checked (schema.h). */
#ifndef AGENT_MODEL_FIELD_H
#define AGENT_MODEL_FIELD_H

#include <apr_pools.h>

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

#endif
