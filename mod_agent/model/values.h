/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of a checkpoint that are too large for one text. A function of this
 * folder that has a parameter `cursor` then returns a text in which
 * AGENT_VALUES_MARK stands for the members of the values, and the cursor of
 * their first part; else *cursor is NULL.
 */
#ifndef AGENT_MODEL_VALUES_H
#define AGENT_MODEL_VALUES_H

#include <apr_general.h>

#include "../db/pool.h"
#include "ref.h"

/* Longest values, in bytes, that are in the text itself. */
#define AGENT_VALUES_BYTES 262144
/* AGENT_VALUES_BYTES as a parameter of a statement. */
#define AGENT_VALUES_LIMIT APR_STRINGIFY(AGENT_VALUES_BYTES)

/* A control character, which JSON text cannot contain. */
#define AGENT_VALUES_MARK '\x01'

/* Longer than a cursor: a UUID, three numbers and the namespace of a subgraph;
 * in a list two numbers more (page.h). */
#define AGENT_VALUES_CURSOR_SIZE 2176

/*
 * Reads the next part of the values, of up to `bytes`; of one value that
 * is longer an eighth, at most 16 times `bytes`. *next: the cursor of the part
 * after it, NULL for the last one. Error: CHECKPOINT_NOT_FOUND, also after it
 * was deleted.
 */
apr_status_t agent_values_read(const char **part, const char **next,
                               agent_db_pool_t *db, const agent_run_ref_t *ref,
                               const char *cursor, apr_size_t bytes,
                               agent_error_t **err, apr_pool_t *pool);

#endif
