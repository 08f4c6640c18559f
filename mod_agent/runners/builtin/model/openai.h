/* SPDX-License-Identifier: Apache-2.0 */
/* OpenAI's Chat Completions. */
#ifndef AGENT_RUNNER_OPENAI_H
#define AGENT_RUNNER_OPENAI_H

#include "call.h"

extern const runner_provider_t runner_openai_provider;

#endif
