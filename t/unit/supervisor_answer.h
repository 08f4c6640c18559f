/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to the statements that save the output of a queue, for tests. */
#ifndef SUPERVISOR_ANSWER_H
#define SUPERVISOR_ANSWER_H

#include "supervisor_queue.h"

#include <libpq-fe.h>

/* The batch in flight gets an answer: how the output of that run fared, and how
 * long the database executed it. */
static inline void answer_first(queue_t *q, const agent_operation_t *operation,
                                const char *run_id, char *outcome,
                                apr_interval_time_t executed)
{
    apr_pool_t *pool = q->fixture->runs->context->pool;
    PGresult *rows = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc columns[] = {
        {"run_id"}, {"outcome"}, {"promoted"}, {"elapsed_usec"}};
    char *values[] = {apr_pstrndup(pool, run_id, 36), outcome, "f",
                      apr_ltoa(pool, executed)};

    assert_true(PQsetResultAttrs(rows, 4, columns));
    for (int i = 0; i < 4; i++) {
        assert_true(PQsetvalue(rows, 0, i, values[i], (int)strlen(values[i])));
    }
    operation->receive(&q->save, (const agent_db_result_t *)&rows);
    PQclear(rows);
}

#endif
