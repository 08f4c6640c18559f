/* SPDX-License-Identifier: Apache-2.0 */
/* Creating runs; see run_create.h. */
#include "run_create.h"

apr_status_t agent_run_create(const char **body, const char **changed,
                              agent_db_pool_t *db,
                              const agent_run_creation_t *creation,
                              agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {
        creation->ref.account_id,  creation->ref.thread_id,
        creation->ref.run_id,      creation->assistant_id,
        creation->graph_id,        agent_db_list(creation->graph_ids, pool),
        creation->strategy,        creation->user_id,
        creation->idempotency_key, creation->request_hash,
        creation->request,         creation->feedback_url};

    return agent_db_pool_call_extra(body, changed, db, AGENT_SQL_CREATE_RUN,
                                    params, err, pool);
}

apr_status_t agent_run_create_stateless(const char **body, agent_db_pool_t *db,
                                        const agent_run_creation_t *creation,
                                        agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {
        creation->ref.account_id, creation->ref.thread_id,
        creation->ref.run_id,     creation->assistant_id,
        creation->graph_id,       agent_db_list(creation->graph_ids, pool),
        creation->user_id,        creation->idempotency_key,
        creation->request_hash,   creation->request,
        creation->feedback_url};

    return agent_db_pool_call(body, db, AGENT_SQL_CREATE_STATELESS_RUN, params,
                              err, pool);
}

apr_status_t agent_run_create_batch(const char **body, agent_db_pool_t *db,
                                    const agent_run_batch_t *batch,
                                    agent_error_t **err, apr_pool_t *pool)
{
    apr_size_t count = (apr_size_t)batch->count;
    const char *params[] = {batch->account_id,
                            agent_db_array(batch->thread_ids, count, pool),
                            agent_db_array(batch->run_ids, count, pool),
                            agent_db_array(batch->assistant_ids, count, pool),
                            agent_db_array(batch->batch_graph_ids, count, pool),
                            agent_db_list(batch->graph_ids, pool),
                            batch->user_id,
                            batch->request,
                            batch->feedback_url};

    return agent_db_pool_call(body, db, AGENT_SQL_CREATE_STATELESS_RUNS, params,
                              err, pool);
}
