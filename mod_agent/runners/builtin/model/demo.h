/* SPDX-License-Identifier: Apache-2.0 */
/* The demo model: no network and no key. */
#ifndef AGENT_RUNNER_DEMO_H
#define AGENT_RUNNER_DEMO_H

#include "call.h"

extern const runner_provider_t runner_demo_provider;

#endif
