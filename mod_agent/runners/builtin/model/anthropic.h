/* SPDX-License-Identifier: Apache-2.0 */
/* Anthropic's Messages API. */
#ifndef AGENT_RUNNER_ANTHROPIC_H
#define AGENT_RUNNER_ANTHROPIC_H

#include "call.h"

extern const runner_provider_t runner_anthropic_provider;

#endif
