/* SPDX-License-Identifier: Apache-2.0 */
/* API keys, as the database has them. Their text is that of core/api_key.h. */
#ifndef AGENT_MODEL_STORED_KEY_H
#define AGENT_MODEL_STORED_KEY_H

#include "../db/pool.h"
#include "key_record.h"

/*
 * Sets *out to the record of a valid key, with the digest of its secret, which
 * the caller has to compare; its user is in pool. begun_at: as in
 * agent_key_record_read(). Errors: UNKNOWN_KEY for a key that does not exist or
 * is not valid, with *out unchanged; INTERNAL for an unexpected result; and
 * those of agent_db_pool_call().
 */
apr_status_t agent_stored_key_find(agent_key_record_t *out, agent_db_pool_t *db,
                                   const char *key_id, apr_time_t begun_at,
                                   agent_error_t **err, apr_pool_t *pool);

/* Records that the key is used in this hour; to be called when the record above
 * has is_use_recorded false. A failure, for example of a database that accepts
 * no writes, does not make the key invalid. */
apr_status_t agent_stored_key_use(agent_db_pool_t *db, const char *key_id,
                                  agent_error_t **err, apr_pool_t *pool);

#endif
