/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies the API key of a request: its checksum, the child's cache, then the
 * database. */
#ifndef AGENT_AUTH_AUTHENTICATE_H
#define AGENT_AUTH_AUTHENTICATE_H

#include "../http/call.h"

/* The parts of a request that concern its key. */
typedef struct agent_auth_request_t {
    /* x-api-key and Authorization; NULL: absent. */
    const char *api_key;
    const char *authorization;
    /* agent_client_address_number() */
    apr_uint64_t address;
    /* The request's key was verified before: it is verified again even if its
     * address has too many failures. */
    bool is_renewal;
} agent_auth_request_t;

/* Creates the cache and the count of failures of a child, in pool. region: of
 * the keys that it admits, borrowed. */
apr_status_t agent_authenticate_create(agent_auth_t **out, agent_db_pool_t *db,
                                       const char *region, apr_pool_t *pool);

/*
 * *out: the owner of the request's key, in pool. Errors: UNAUTHORIZED without a
 * key, INVALID_KEY, UNKNOWN_KEY, TOO_MANY_FAILURES, REGION_MISMATCH, and those
 * of the database. A key in the cache causes no error.
 */
apr_status_t agent_authenticate(const agent_identity_t **out,
                                agent_auth_t *auth,
                                const agent_auth_request_t *request,
                                agent_error_t **err, apr_pool_t *pool);

#endif
