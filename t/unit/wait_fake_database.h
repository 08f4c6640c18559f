/* SPDX-License-Identifier: Apache-2.0 */
/* A fake database for wait_*.c: the test sets the result of queries. */
#ifndef WAIT_FAKE_DATABASE_H
#define WAIT_FAKE_DATABASE_H

#include <sched.h>

#include "../../mod_agent/db/pool.h"

/* Result of the next query: rows of run id, number, name, data. */
struct agent_db_result_t {
    int rows;
    const char *cells[8][4];
};

static agent_db_result_t next_result;
/* Of every query; AGENT_E_COUNT: none. */
static agent_error_id_t query_error = AGENT_E_COUNT;
/* Atomic: queries wait until it is false. */
static bool query_blocks;
static int queries;
/* The elements of the arrays that were parameters. */
static int elements;

static inline int count_elements(const char *array)
{
    int count = array != NULL && array[0] == '{' && array[1] != '}';

    for (; count > 0 && *array != '\0'; array++) {
        count += *array == ',';
    }
    return count;
}

apr_status_t agent_db_pool_query(agent_db_result_t **result,
                                 agent_db_pool_t *connections,
                                 const agent_statement_t *statement,
                                 const char *const *params, agent_error_t **err,
                                 apr_pool_t *pool)
{
    *result = &next_result;
    elements += statement->params > 0 ? count_elements(params[0]) : 0;
    __atomic_add_fetch(&queries, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&query_blocks, __ATOMIC_SEQ_CST)) {
        sched_yield();
    }
    return query_error != AGENT_E_COUNT
        ? agent_error_set(err, query_error, NULL, NULL, pool)
        : APR_SUCCESS;
}

int agent_db_rows(const agent_db_result_t *result)
{
    return result->rows;
}

const char *agent_db_value(const agent_db_result_t *result, int row, int column)
{
    return result->cells[row][column];
}

#endif
