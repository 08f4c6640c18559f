/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies API keys; see authenticate.h. */
#include "authenticate.h"

#include <string.h>

#include "../core/attempts.h"
#include "../core/clock.h"
#include "../model/stored_key.h"
#include "credential.h"
#include "key_cache.h"

/* Most refused keys of one address within FAILURE_TIME of the first. */
#define FAILURE_LIMIT 20
#define FAILURE_TIME  apr_time_from_sec(10)

struct agent_auth_t {
    agent_db_pool_t *db;
    const char *region;
    agent_key_cache_t *cache;
    agent_attempts_t *failures;
};

/* A key on its way to its identity. */
typedef struct attempt_t {
    agent_auth_t *auth;
    agent_api_key_t key;
    apr_uint64_t address;
    bool is_renewal;
    /* Of the monotonic clock. */
    apr_time_t begun_at;
    agent_error_t **err;
    apr_pool_t *pool;
} attempt_t;

apr_status_t agent_authenticate_create(agent_auth_t **out, agent_db_pool_t *db,
                                       const char *region, apr_pool_t *pool)
{
    agent_auth_t *auth = apr_pcalloc(pool, sizeof(*auth));
    apr_status_t rv = agent_key_cache_create(&auth->cache, AGENT_KEY_CACHE_SIZE,
                                             pool);

    auth->db = db;
    auth->region = region;
    *out = auth;
    return rv == APR_SUCCESS ? agent_attempts_create(
               &auth->failures, FAILURE_LIMIT, FAILURE_TIME, pool)
                             : rv;
}

/* ---- the key as text ---- */

static apr_status_t choose_key(const char **key,
                               const agent_auth_request_t *request,
                               agent_error_t **err, apr_pool_t *pool)
{
    switch (agent_credential_choose(key, request->api_key,
                                    request->authorization)) {
    case AGENT_CREDENTIAL_FOUND:
        return APR_SUCCESS;
    case AGENT_CREDENTIAL_NONE:
        return agent_error_set(err, AGENT_E_UNAUTHORIZED, NULL, NULL, pool);
    case AGENT_CREDENTIAL_CONFLICT:
        return agent_error_set(err, AGENT_E_INVALID_KEY,
                               "x-api-key and Authorization have different "
                               "API keys.",
                               NULL, pool);
    default:
        return agent_error_set(err, AGENT_E_INVALID_KEY,
                               "The header of the API key is empty, too long, "
                               "or was sent twice.",
                               NULL, pool);
    }
}

static apr_status_t parse_key(agent_api_key_t *out, const char *text,
                              agent_error_t **err, apr_pool_t *pool)
{
    switch (agent_api_key_parse(out, text)) {
    case AGENT_API_KEY_OK:
        return APR_SUCCESS;
    case AGENT_API_KEY_CHECKSUM:
        return agent_error_set(err, AGENT_E_INVALID_KEY,
                               "The checksum of the API key is wrong: a "
                               "character was changed.",
                               NULL, pool);
    default:
        return agent_error_set(err, AGENT_E_INVALID_KEY, NULL, NULL, pool);
    }
}

/* ---- the verification ---- */

/* One error for a key that does not exist and for a wrong secret. */
static apr_status_t refuse_key(const attempt_t *attempt)
{
    agent_attempts_add(attempt->auth->failures, attempt->address,
                       attempt->begun_at);
    return agent_error_set(attempt->err, AGENT_E_UNKNOWN_KEY, NULL, NULL,
                           attempt->pool);
}

/* Compares even without a record, so that the response time does not reveal
 * whether there is one. */
static bool is_secret(const attempt_t *attempt,
                      const agent_key_record_t *record)
{
    unsigned char digest[AGENT_API_KEY_DIGEST_BYTES];

    return agent_api_key_digest(digest, attempt->key.secret,
                                AGENT_API_KEY_SECRET_CHARS)
        && agent_api_key_is_digest(digest, record->digest);
}

/* Neither the kind nor the region is a part of the secret's digest. */
static bool is_genuine(const attempt_t *attempt,
                       const agent_key_record_t *record)
{
    return is_secret(attempt, record)
        && record->identity.kind == attempt->key.kind
        && strcmp(attempt->key.region, attempt->auth->region) == 0;
}

/* A foreign key of the schema ensures that accounts belong to the database's
 * region: an account of another region is an error of the database, 503, not of
 * the client. */
static apr_status_t check_home(const attempt_t *attempt,
                               const agent_key_record_t *record)
{
    return strcmp(record->region, attempt->auth->region) == 0
        ? APR_SUCCESS
        : agent_error_set(attempt->err, AGENT_E_REGION_MISMATCH, NULL,
                          "the account of a key is of another region",
                          attempt->pool);
}

static apr_status_t find_record(agent_key_record_t *out,
                                const attempt_t *attempt)
{
    if (agent_stored_key_find(out, attempt->auth->db, attempt->key.id,
                              attempt->begun_at, attempt->err, attempt->pool)
        != APR_SUCCESS) {
        if ((*attempt->err)->id == AGENT_E_UNKNOWN_KEY) {
            is_secret(attempt, out);
            return refuse_key(attempt);
        }
        return APR_EGENERAL;
    }
    return is_genuine(attempt, out) ? check_home(attempt, out)
                                    : refuse_key(attempt);
}

/* A database that accepts no writes, for example, still admits the key. */
static void record_use(const attempt_t *attempt)
{
    agent_error_t *ignored;

    agent_stored_key_use(attempt->auth->db, attempt->key.id, &ignored,
                         attempt->pool);
}

static apr_status_t ask_database(agent_identity_t *out,
                                 const attempt_t *attempt, const char *text)
{
    agent_key_record_t record = {.is_use_recorded = true};

    if (find_record(&record, attempt) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    if (!record.is_use_recorded) {
        record_use(attempt);
    }
    agent_key_cache_add(attempt->auth->cache, text, &record.identity,
                        agent_key_cache_until(&record.identity));
    *out = record.identity;
    return APR_SUCCESS;
}

/* The cache comes first: it has no key that the parser would refuse. */
static apr_status_t verify(agent_identity_t *out, attempt_t *attempt,
                           const char *text)
{
    apr_interval_time_t wait;

    if (agent_key_cache_find(out, attempt->auth->cache, text, attempt->begun_at,
                             attempt->pool)) {
        return APR_SUCCESS;
    }
    if (parse_key(&attempt->key, text, attempt->err, attempt->pool)
        != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    wait = attempt->is_renewal
        ? 0
        : agent_attempts_wait(attempt->auth->failures, attempt->address,
                              attempt->begun_at);
    if (wait > 0) {
        agent_error_set(attempt->err, AGENT_E_TOO_MANY_FAILURES, NULL, NULL,
                        attempt->pool);
        (*attempt->err)->retry_sec = (int)apr_time_sec(wait) + 1;
        return APR_EGENERAL;
    }
    return ask_database(out, attempt, text);
}

apr_status_t agent_authenticate(const agent_identity_t **out,
                                agent_auth_t *auth,
                                const agent_auth_request_t *request,
                                agent_error_t **err, apr_pool_t *pool)
{
    attempt_t attempt = {.auth = auth,
                         .address = request->address,
                         .is_renewal = request->is_renewal,
                         .begun_at = agent_clock_boot_now(),
                         .err = err,
                         .pool = pool};
    agent_identity_t *identity = apr_palloc(pool, sizeof(*identity));
    const char *text = NULL;

    if (choose_key(&text, request, err, pool) != APR_SUCCESS
        || verify(identity, &attempt, text) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    *out = identity;
    return APR_SUCCESS;
}
