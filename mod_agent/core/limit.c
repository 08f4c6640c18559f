/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of accounts; see limit.h. */
#include "limit.h"

#include <string.h>

#include <apr_strings.h>

/* A limit: its word in httpd.conf, the name of the things that it counts (in
 * the error), whether the schema enforces it, and whether these things end by
 * themselves, so that a refused request may succeed later. */
typedef struct limit_row_t {
    const char *word;
    const char *things;
    bool is_stored;
    bool is_passing;
} limit_row_t;

static const limit_row_t rows[AGENT_LIMIT_COUNT] = {
    [AGENT_LIMIT_KEYS] = {"keys", "valid API keys", true, false},
    [AGENT_LIMIT_QUEUED_RUNS] = {"queued_runs", "unfinished runs", true, true},
    [AGENT_LIMIT_RUNNING_RUNS] = {"running_runs", "runs that execute", true,
                                  true},
    [AGENT_LIMIT_WAITING_REQUESTS] = {"waiting_requests", "requests that wait",
                                      false, true},
    [AGENT_LIMIT_STREAMS] = {"streams", "open streams", false, true},
    [AGENT_LIMIT_DEPLOYMENTS] = {"deployments", "deployments", true, false},
    [AGENT_LIMIT_THREADS] = {"threads", "threads", true, false},
    [AGENT_LIMIT_WEBHOOKS] = {"webhooks", "webhooks to deliver", true, true},
    [AGENT_LIMIT_STORED_BYTES] = {"stored_bytes", "stored bytes", true, false}};

/* Retry-After: runs and requests take more than a second to end. */
#define RETRY_SEC 5

const char *agent_limit_word(agent_limit_name_t name)
{
    return rows[name].word;
}

bool agent_limit_is_stored(agent_limit_name_t name)
{
    return rows[name].is_stored;
}

const char *agent_limit_list_words(apr_pool_t *pool)
{
    const char *list = rows[0].word;

    /* Bounded: the words of the table. */
    for (int i = 1; i < AGENT_LIMIT_COUNT; i++) {
        list = apr_pstrcat(pool, list, ", ", rows[i].word, NULL);
    }
    return list;
}

bool agent_limit_find(agent_limit_name_t *out, const char *word)
{
    for (int i = 0; i < AGENT_LIMIT_COUNT; i++) {
        if (strcmp(rows[i].word, word) == 0) {
            *out = (agent_limit_name_t)i;
            return true;
        }
    }
    return false;
}

apr_status_t agent_limit_refuse(agent_error_t **err, agent_limit_name_t name,
                                apr_int64_t value, apr_pool_t *pool)
{
    const limit_row_t *row = &rows[name];

    agent_error_setf(err,
                     name == AGENT_LIMIT_STORED_BYTES ? AGENT_E_STORED_BYTES
                                                      : AGENT_E_LIMIT,
                     pool,
                     "The account may have at most %" APR_INT64_T_FMT
                     " %s. The operator of the server raises this limit with "
                     "AgentLimit %s.",
                     value, row->things, row->word);
    (*err)->members = apr_psprintf(
        pool, ",\"limit\":\"%s\",\"value\":%" APR_INT64_T_FMT, row->word,
        value);
    /* A limit of 0 permits none, however long the client waits. */
    (*err)->retry_sec = row->is_passing && value > 0 ? RETRY_SEC : 0;
    return APR_EGENERAL;
}

apr_status_t agent_limit_refuse_text(agent_error_t **err, const char *text,
                                     apr_pool_t *pool)
{
    char *word = apr_pstrdup(pool, text != NULL ? text : "");
    char *value = strchr(word, ' ');
    agent_limit_name_t name;

    if (value != NULL) {
        *value++ = '\0';
    }
    return value != NULL && agent_limit_find(&name, word)
        ? agent_limit_refuse(err, name, apr_atoi64(value), pool)
        : agent_error_set(err, AGENT_E_INTERNAL, NULL,
                          "a function named no limit", pool);
}
