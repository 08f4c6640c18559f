/* SPDX-License-Identifier: Apache-2.0 */
/* Responses with lists of records, or with single records of a similar size. */
#ifndef AGENT_STREAM_LIST_H
#define AGENT_STREAM_LIST_H

#include "../http/call.h"
#include "../model/page.h"

typedef struct agent_list_request_t agent_list_request_t;

/*
 * Reads a page from db, with a function of ../model that has max_bytes. May be
 * called again after the query string and the body of the call were freed.
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
    /* Selects the records; keys is not set. All zero: read() returns the whole
     * page, which the first turn sends. The texts of this member are in the
     * call's pool, except `request`, which is NULL or the same as json. */
    agent_page_records_t records;
};

/*
 * Responds with the page that read() returns: at once when it has at most
 * AGENT_PAGE_LIMIT bytes. A larger page is composed in turns, record by record
 * as the client reads, so that a child holds only a part of each; 503 when no
 * more requests may wait. All large pages of a deployment share the turns of
 * one waiting request. Returns what the handler returns to httpd.
 */
int agent_list_respond(agent_call_t *call, const agent_list_request_t *request)
    __attribute__((warn_unused_result));

#endif
