/* SPDX-License-Identifier: Apache-2.0 */
/* The table of model providers. */
#ifndef AGENT_RUNNER_PROVIDER_H
#define AGENT_RUNNER_PROVIDER_H

#include "call.h"

/* The provider of that name; NULL when there is none. */
const runner_provider_t *runner_provider_find(const char *name);

#endif
