/* SPDX-License-Identifier: Apache-2.0 */
/* check_leases: which of this worker's runs were cancelled or lost. */
#ifndef AGENT_SUPERVISOR_CHECK_H
#define AGENT_SUPERVISOR_CHECK_H

#include "database.h"

extern const agent_operation_t agent_check_operation;

#endif
