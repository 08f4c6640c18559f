/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of records, and records that may be as large. */
#ifndef AGENT_STREAM_LIST_H
#define AGENT_STREAM_LIST_H

#include "../http/call.h"
#include "../model/page.h"

typedef struct agent_list_request_t agent_list_request_t;

/*
 * Reads a page from db, with a function of ../model that has max_bytes. May be
 * called again, when the query string and the body of the call are freed.
 */
typedef apr_status_t (*agent_list_read_fn_t)(
    agent_page_t *page, agent_call_t *call, agent_db_pool_t *db,
    const agent_list_request_t *request, const char *max_bytes,
    apr_pool_t *pool);

struct agent_list_request_t {
    agent_list_read_fn_t read;
    /* For read; in the call's pool, or NULL. */
    const void *filter;
    /* For read: JSON text, the body of the call for example; NULL: none. It is
     * copied before that is freed. */
    const char *json;
    /* Without keys; all zero: read() returns the whole page, which is sent by
     * the first turn. The texts are in the call's pool, but `request`, which is
     * NULL or the same as json. */
    agent_page_records_t records;
};

/*
 * Responds with the page that read() returns: at once when it has at most
 * AGENT_PAGE_LIMIT bytes. A larger one is composed in turns, record by record
 * as the client reads, so that a child has a part of each; 503 when no further
 * request may wait. The large ones of a deployment take their turns as one.
 * Returns what the handler returns to httpd.
 */
int agent_list_respond(agent_call_t *call, const agent_list_request_t *request)
    __attribute__((warn_unused_result));

#endif
