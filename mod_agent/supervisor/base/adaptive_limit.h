/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many rows a statement may ask for: halved when one takes too long or is
 * refused, doubled when one succeeds, between 1 and a maximum.
 */
#ifndef AGENT_SUPERVISOR_ADAPTIVE_LIMIT_H
#define AGENT_SUPERVISOR_ADAPTIVE_LIMIT_H

typedef struct agent_adaptive_limit_t {
    /* Rows that the next statement may ask for. */
    int current;
    int max;
} agent_adaptive_limit_t;

/* Starts at the maximum, which is at least 1. */
void agent_adaptive_limit_init(agent_adaptive_limit_t *limit, int max);

/* A statement succeeded: the next one may ask for twice as many rows. */
void agent_adaptive_limit_raise(agent_adaptive_limit_t *limit);

/* A statement that asked for `asked` rows took too long or was refused: the
 * next one asks for half of them. */
void agent_adaptive_limit_lower(agent_adaptive_limit_t *limit, int asked);

#endif
