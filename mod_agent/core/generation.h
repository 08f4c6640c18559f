/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A generation of the server, in httpd's sense: each start or restart, which
 * reads the configuration again, begins one. All its processes have a copy of
 * this struct.
 */
#ifndef AGENT_CORE_GENERATION_H
#define AGENT_CORE_GENERATION_H

#include "clock.h"
#include "uuid.h"

typedef struct agent_generation_t {
    char id[AGENT_UUID_SIZE];
    apr_time_t begun_at; /* by the monotonic clock, the same in all processes */
} agent_generation_t;

/* Begins a generation now. */
void agent_generation_begin(agent_generation_t *generation);

/* Returns the age of a generation in milliseconds, by the monotonic clock;
 * never less than 0. */
apr_int64_t agent_generation_age_ms(const agent_generation_t *generation);

#endif
