/* SPDX-License-Identifier: Apache-2.0 */
/* The table of model providers: one row each. */
#include "provider.h"

#include <string.h>

#include "anthropic.h"
#include "demo.h"
#include "openai.h"

static const runner_provider_t *const providers[] = {
    &runner_demo_provider,
    &runner_anthropic_provider,
    &runner_openai_provider,
};

const runner_provider_t *runner_provider_find(const char *name)
{
    for (size_t i = 0; i < sizeof(providers) / sizeof(providers[0]); i++) {
        if (strcmp(providers[i]->name, name) == 0) {
            return providers[i];
        }
    }
    return NULL;
}
