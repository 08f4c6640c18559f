/* SPDX-License-Identifier: Apache-2.0 */
/* API keys, as the database has them. Their text is that of core/api_key.h. */
#ifndef AGENT_MODEL_STORED_KEY_H
#define AGENT_MODEL_STORED_KEY_H

#include "../db/pool.h"

/*
 * *body: the object of agent.find_api_key() about a valid key, with the digest
 * of its secret, which the caller has to compare. Errors: AGENT_E_UNKNOWN_KEY,
 * whatever is wrong with it, and those of agent_db_pool_call().
 */
apr_status_t agent_stored_key_find(const char **body, agent_db_pool_t *db,
                                   const char *key_id, agent_error_t **err,
                                   apr_pool_t *pool);

/* Records that the key is used in this hour; to be called when the body above
 * has is_used false. A failure, such as that of a database that accepts no
 * writes, says nothing about the key. */
apr_status_t agent_stored_key_use(agent_db_pool_t *db, const char *key_id,
                                  agent_error_t **err, apr_pool_t *pool);

#endif
