/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the size of a request's line and headers; see header_size.h. */
#include "header_size.h"

#include <string.h>

static apr_size_t count_bytes(const request_rec *r)
{
    const apr_array_header_t *headers = apr_table_elts(r->headers_in);
    apr_size_t bytes = strlen(r->the_request);

    for (int i = 0; i < headers->nelts; i++) {
        const apr_table_entry_t *header = &APR_ARRAY_IDX(
            headers, i, const apr_table_entry_t);

        bytes += strlen(header->key) + strlen(header->val);
    }
    return bytes;
}

apr_status_t agent_header_size_check(agent_call_t *call)
{
    if (count_bytes(call->r) <= AGENT_HEADER_SIZE_MAX) {
        return APR_SUCCESS;
    }
    call->r->connection->keepalive = AP_CONN_CLOSE;
    return agent_error_setf(&call->err, AGENT_E_HEAD_TOO_LARGE, call->pool,
                            "The request line and the headers are larger than "
                            "%" APR_SIZE_T_FMT " bytes together.",
                            AGENT_HEADER_SIZE_MAX);
}
