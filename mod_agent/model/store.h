/* SPDX-License-Identifier: Apache-2.0 */
/* The store: items under a namespace and a key. *body and errors: as in run.h.
 * request: the body as sent, checked by agent_schema_store(). */
#ifndef AGENT_MODEL_STORE_H
#define AGENT_MODEL_STORE_H

#include "../db/pool.h"
#include "page.h"
#include "ref.h"

/* Puts an item; deletes one. ttl: of a request without one, an interval of
 * PostgreSQL; NULL: none. */
apr_status_t agent_store_put(agent_db_pool_t *db, const agent_run_ref_t *ref,
                             const char *ttl, const char *request,
                             agent_error_t **err, apr_pool_t *pool);
apr_status_t agent_store_delete(agent_db_pool_t *db, const agent_run_ref_t *ref,
                                const char *request, agent_error_t **err,
                                apr_pool_t *pool);

/* The item that a read names. All borrowed. */
typedef struct agent_item_ref_t {
    /* Labels, joined by periods. */
    const char *namespace;
    const char *key;
    /* Whether the read begins the item's time to live again. */
    bool refresh;
} agent_item_ref_t;

/* Reads an item; *body: `null` when there is none. */
apr_status_t agent_store_get(const char **body, agent_db_pool_t *db,
                             const agent_run_ref_t *ref,
                             const agent_item_ref_t *item, agent_error_t **err,
                             apr_pool_t *pool);

/* Searches items: up to the limit of the request, or as many as fit into about
 * 16 MB, but at least one. Error: TOO_MANY_ITEMS. */
apr_status_t agent_store_search(agent_page_t *page, agent_db_pool_t *db,
                                const agent_run_ref_t *ref, const char *request,
                                const char *max_bytes, agent_error_t **err,
                                apr_pool_t *pool);

/* Lists namespaces. Error: TOO_MANY_ITEMS. */
apr_status_t agent_store_list(const char **body, agent_db_pool_t *db,
                              const agent_run_ref_t *ref, const char *request,
                              agent_error_t **err, apr_pool_t *pool);

#endif
