/* SPDX-License-Identifier: Apache-2.0 */
/* Creates runs; see run_create.h. */
#include "run_create.h"

static const agent_statement_t create_run = {
    .name = "agent_create_run",
    .params = 15,
    .sql = "select code, body, changed from agent.create_run($1, $2, $3, $4, "
           "$5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"};

apr_status_t agent_run_create(const char **body, const char **changed,
                              agent_db_pool_t *db,
                              const agent_run_creation_t *creation,
                              const char *before, agent_error_t **err,
                              apr_pool_t *pool)
{
    const char *params[] = {
        creation->ref.deployment_id,
        creation->ref.thread_id,
        creation->ref.run_id,
        creation->assistant_id,
        creation->graph_id,
        agent_db_text_array(creation->known_graph_ids, pool),
        creation->strategy,
        creation->user_id,
        creation->idempotency_key,
        creation->request_hash,
        creation->request,
        creation->feedback_url,
        before,
        creation->thread_ttl,
        creation->headers};

    return agent_db_pool_call_extra(body, changed, db, &create_run, params, err,
                                    pool);
}

static const agent_statement_t create_stateless_run = {
    .name = "agent_create_stateless_run",
    .params = 13,
    .sql = "select code, body from agent.create_stateless_run($1, $2, $3, $4, "
           "$5, $6, $7, $8, $9, $10, $11, $12, $13)"};

apr_status_t agent_run_create_stateless(const char **body, agent_db_pool_t *db,
                                        const agent_run_creation_t *creation,
                                        agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {
        creation->ref.deployment_id,
        creation->ref.thread_id,
        creation->ref.run_id,
        creation->assistant_id,
        creation->graph_id,
        agent_db_text_array(creation->known_graph_ids, pool),
        creation->user_id,
        creation->idempotency_key,
        creation->request_hash,
        creation->request,
        creation->feedback_url,
        creation->thread_ttl,
        creation->headers};

    return agent_db_pool_call(body, db, &create_stateless_run, params, err,
                              pool);
}

static const agent_statement_t create_stateless_runs = {
    .name = "agent_create_stateless_runs",
    .params = 11,
    .sql = "select code, body from agent.create_stateless_runs($1, $2, $3, $4, "
           "$5, $6, $7, $8, $9, $10, $11)"};

apr_status_t agent_run_create_batch(const char **body, agent_db_pool_t *db,
                                    const agent_run_batch_t *batch,
                                    agent_error_t **err, apr_pool_t *pool)
{
    apr_size_t count = (apr_size_t)batch->count;
    const char *params[] = {batch->deployment_id,
                            agent_db_array(batch->thread_ids, count, pool),
                            agent_db_array(batch->run_ids, count, pool),
                            agent_db_array(batch->assistant_ids, count, pool),
                            agent_db_array(batch->graph_ids, count, pool),
                            agent_db_text_array(batch->known_graph_ids, pool),
                            batch->user_id,
                            batch->request,
                            batch->feedback_url,
                            batch->thread_ttl,
                            batch->headers};

    return agent_db_pool_call(body, db, &create_stateless_runs, params, err,
                              pool);
}
