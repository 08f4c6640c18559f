/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of accounts (AgentLimit): their names, and the error of a request
 * that would exceed one.
 */
#ifndef AGENT_CORE_LIMIT_H
#define AGENT_CORE_LIMIT_H

#include <stdbool.h>

#include "error.h"
#include "generation.h"

typedef enum agent_limit_name_t {
    AGENT_LIMIT_KEYS,
    AGENT_LIMIT_QUEUED_RUNS,
    AGENT_LIMIT_RUNNING_RUNS,
    AGENT_LIMIT_WAITING_REQUESTS,
    AGENT_LIMIT_STREAMS,
    AGENT_LIMIT_DEPLOYMENTS,
    AGENT_LIMIT_THREADS,
    AGENT_LIMIT_WEBHOOKS,
    AGENT_LIMIT_STORED_BYTES,
    AGENT_LIMIT_COUNT
} agent_limit_name_t;

/* The limits of httpd.conf that the schema stores, as JSON text for
 * agent.set_limits (NULL: none), and the generation whose configuration has
 * them. */
typedef struct agent_stored_limits_t {
    const char *text;
    agent_generation_t generation;
} agent_stored_limits_t;

/* Returns the word of a limit, as in httpd.conf; constant. */
const char *agent_limit_word(agent_limit_name_t name);

/* Whether the functions of the schema enforce the limit; each child of httpd
 * enforces the others. */
bool agent_limit_is_stored(agent_limit_name_t name);

/* Returns all words, with commas; in pool. */
const char *agent_limit_list_words(apr_pool_t *pool);

/* Finds the limit of a word; false: unknown word. */
bool agent_limit_find(agent_limit_name_t *out, const char *word);

/* Sets error LIMIT (STORED_BYTES for stored_bytes); the text names the limit,
 * its value and how to raise it. If waiting helps, the error has a Retry-After.
 * Returns APR_EGENERAL. */
apr_status_t agent_limit_refuse(agent_error_t **err, agent_limit_name_t name,
                                apr_int64_t value, apr_pool_t *pool);

/* Sets the error of agent_limit_refuse() from the body that functions of the
 * schema return with limit_exceeded: the word and the value. INTERNAL for any
 * other text. */
apr_status_t agent_limit_refuse_text(agent_error_t **err, const char *text,
                                     apr_pool_t *pool);

#endif
