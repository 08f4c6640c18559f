/* SPDX-License-Identifier: Apache-2.0 */
/* Queries to the status page: which rule a request matches and what is left,
 * and resets. */
#ifndef RLR_QUERY_H
#define RLR_QUERY_H

#include <httpd.h>

#include "../decision/decide.h"

/* A query and its result. */
typedef struct rlr_query_t {
    /* A sentence for an invalid query, or NULL. */
    const char *problem;
    const rlr_vhost_t *vhost;
    /* The queried request. */
    rlr_subject_t subject;
    /* Its decision, or NULL if none was queried. */
    const rlr_decision_t *decision;
    /* Whose counter decided, or was reset; without secrets. */
    const char *identity;
    /* Counters that were reset; -1: no reset was requested. */
    int reset;
} rlr_query_t;

/* Reads a query (GET with a query string, POST with a form) and executes it;
 * `form` has its parameters. */
void rlr_query_run(rlr_query_t *query, request_rec *r, const apr_table_t *form);

#endif
