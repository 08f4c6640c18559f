/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of a list of an account's records a request asks for. */
#ifndef AGENT_HANDLERS_PAGE_PARAMS_H
#define AGENT_HANDLERS_PAGE_PARAMS_H

#include "../http/call.h"
#include "../model/account.h"

/* Reads limit (1 to 1000; 100) and the parameter name, which has the last id of
 * the page before. Error: INVALID. */
apr_status_t agent_page_params_read(agent_account_part_t *part,
                                    agent_call_t *call, const char *name);

/* Checks that the id, if there is one, is a number. Error: INVALID. */
apr_status_t agent_page_params_check_number(const agent_account_part_t *part,
                                            agent_call_t *call,
                                            const char *name);

#endif
