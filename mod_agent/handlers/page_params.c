/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of lists; see page_params.h. */
#include "page_params.h"

#include <string.h>

#include "../http/request.h"

#define DEFAULT_LIMIT 100
#define MAX_LIMIT     1000
/* Of an id. */
#define ID_BYTES 40
/* Most digits of a number that a bigint surely holds. PostgreSQL would refuse
 * others too, but log an error for each. */
#define NUMBER_DIGITS 18

apr_status_t agent_page_params_read(agent_account_part_t *part,
                                    agent_call_t *call, const char *name)
{
    part->account_id = call->identity->account_id;
    part->after = NULL;
    part->limit = DEFAULT_LIMIT;
    return agent_request_text(&part->after, call, name, ID_BYTES) == APR_SUCCESS
        ? agent_request_number(&part->limit, call, "limit", 1, MAX_LIMIT)
        : APR_EGENERAL;
}

apr_status_t agent_page_params_check_number(const agent_account_part_t *part,
                                            agent_call_t *call,
                                            const char *name)
{
    return part->after == NULL
            || (strlen(part->after) <= NUMBER_DIGITS
                && part->after[strspn(part->after, "0123456789")] == '\0')
        ? APR_SUCCESS
        : agent_error_setf(&call->err, AGENT_E_INVALID, call->pool,
                           "Query parameter %s: expected a number.", name);
}
