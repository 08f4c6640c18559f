/* SPDX-License-Identifier: Apache-2.0 */
/* Limits and counts warnings in a row of the shared table. */
#include "warning.h"

#include <string.h>

#include <apr_strings.h>

static const rlr_limit_t once_a_minute = {1, 60};
/* Never reached. */
static const rlr_limit_t all_of_a_minute = {1000000, 60};

static rlr_window_decision_t charge(const rlr_vhost_t *vhost,
                                    const char *identity, rlr_limit_t limit)
{
    rlr_table_request_t request;
    rlr_table_decision_t decision;

    memset(&request, 0, sizeof(request));
    request.row = vhost->warning_row;
    request.identity = identity;
    request.identity_length = strlen(identity);
    request.limit = limit;
    rlr_table_admit(vhost->table, &request, &rlr_clock_monotonic, &decision);
    return decision.window;
}

bool rlr_warning_is_due(const rlr_vhost_t *vhost, const char *warning)
{
    return charge(vhost, warning, once_a_minute).admitted;
}

uint32_t rlr_warning_count(const rlr_vhost_t *vhost, const char *event)
{
    char identity[64];

    /* The warning of the same name is charged by the bare name. */
    apr_snprintf(identity, sizeof(identity), "%s a minute", event);
    return all_of_a_minute.count
        - charge(vhost, identity, all_of_a_minute).remaining;
}
