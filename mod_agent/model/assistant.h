/* SPDX-License-Identifier: Apache-2.0 */
/* Assistants, and their graphs as runners reported them. *body and
 * errors: as in run.h. */
#ifndef AGENT_MODEL_ASSISTANT_H
#define AGENT_MODEL_ASSISTANT_H

#include "../db/pool.h"
#include "ref.h"

/* The part of an assistant that is shown. */
typedef enum agent_assistant_view_t {
    /* Its record. */
    AGENT_ASSISTANT_RECORD,
    /* The JSON schemas of its graph; null for those that were not reported. */
    AGENT_ASSISTANT_SCHEMAS,
    /* The nodes and edges of its graph; none if they were not reported. */
    AGENT_ASSISTANT_DRAWING
} agent_assistant_view_t;

/* Returns what `view` names. assistant_id: a UUID in lower case. Error:
 * ASSISTANT_NOT_FOUND. */
apr_status_t agent_assistant_get(const char **body, agent_db_pool_t *db,
                                 const agent_run_ref_t *ref,
                                 const char *assistant_id,
                                 agent_assistant_view_t view,
                                 agent_error_t **err, apr_pool_t *pool);

/*
 * Lists assistants: up to the limit of the request, or as many as fit into
 * about 16 MB, but at least one. request: the body as sent, checked by
 * agent_schema_assistants(). *next: the offset of the next page, in pool; NULL
 * after the last one.
 */
apr_status_t agent_assistant_search(const char **body, const char **next,
                                    agent_db_pool_t *db,
                                    const agent_run_ref_t *ref,
                                    const char *request, agent_error_t **err,
                                    apr_pool_t *pool);

#endif
