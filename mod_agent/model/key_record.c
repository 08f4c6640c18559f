/* SPDX-License-Identifier: Apache-2.0 */
/* Reads records of API keys; see key_record.h. */
#include "key_record.h"

#include <string.h>

#include <apr_escape.h>
#include <apr_strings.h>

#include "../core/clock.h"
#include "../core/raw.h"

static bool is_null(agent_raw_t value)
{
    return agent_raw_kind(value) == AGENT_RAW_NULL;
}

/* False: it is not a string, is empty, or does not fit. */
static bool read_text(char *out, size_t size, agent_raw_t value,
                      apr_pool_t *pool)
{
    const char *text = agent_raw_string(value, pool);

    if (text == NULL || *text == '\0' || strlen(text) >= size) {
        return false;
    }
    apr_cpystrn(out, text, size);
    return true;
}

static bool read_digest(unsigned char *out, agent_raw_t value, apr_pool_t *pool)
{
    const char *text = agent_raw_string(value, pool);

    return text != NULL && strlen(text) == 2 * AGENT_API_KEY_DIGEST_BYTES
        && apr_unescape_hex(out, text, APR_ESCAPE_STRING, 0, NULL)
        == APR_SUCCESS;
}

static bool read_kind(agent_api_key_kind_t *out, agent_raw_t value,
                      apr_pool_t *pool)
{
    const char *word = agent_raw_string(value, pool);

    return word != NULL && agent_api_key_read_kind(out, word);
}

/* Both members are null for a key of all deployments of the account. */
static bool read_deployment(agent_identity_t *out, agent_raw_t object,
                            apr_pool_t *pool)
{
    agent_raw_t id = agent_raw_get(object, "deployment_id");
    agent_raw_t name = agent_raw_get(object, "deployment");

    out->deployment_id[0] = '\0';
    out->deployment[0] = '\0';
    return (is_null(id) && is_null(name))
        || (read_text(out->deployment_id, sizeof(out->deployment_id), id, pool)
            && read_text(out->deployment, sizeof(out->deployment), name, pool));
}

/* Null for a key of no user. */
static bool read_user(const char **out, agent_raw_t value, apr_pool_t *pool)
{
    *out = agent_raw_string(value, pool);
    return *out != NULL || is_null(value);
}

static bool read_scopes(unsigned *out, agent_raw_t list, apr_pool_t *pool)
{
    const char *at = list.text;
    agent_raw_t item;

    if (agent_raw_kind(list) != AGENT_RAW_ARRAY) {
        return false;
    }
    *out = 0;
    while (agent_raw_element_next(&item, &at)) {
        const char *word = agent_raw_string(item, pool);

        *out |= word != NULL ? agent_scope_read(word) : 0;
    }
    return true;
}

/* Null for a key that does not expire. */
static bool read_expiry(apr_time_t *out, agent_raw_t expires_in_ms,
                        apr_time_t begun_at)
{
    bool is_number = agent_raw_kind(expires_in_ms) == AGENT_RAW_NUMBER;
    apr_int64_t left = is_number ? apr_strtoi64(expires_in_ms.text, NULL, 10)
                                 : APR_INT64_MAX;

    *out = left < apr_time_as_msec(AGENT_CLOCK_NEVER - begun_at)
        ? begun_at + apr_time_from_msec(left)
        : AGENT_CLOCK_NEVER;
    return is_number || is_null(expires_in_ms);
}

static bool read_flag(bool *out, agent_raw_t value)
{
    *out = agent_raw_kind(value) == AGENT_RAW_BOOLEAN && *value.text == 't';
    return agent_raw_kind(value) == AGENT_RAW_BOOLEAN;
}

bool agent_key_record_read(agent_key_record_t *out, const char *body,
                           apr_time_t begun_at, apr_pool_t *pool)
{
    agent_raw_t object = agent_raw_read(body);
    agent_identity_t *identity = &out->identity;

    identity->checked_at = begun_at;
    return read_digest(out->digest, agent_raw_get(object, "digest"), pool)
        && read_kind(&identity->kind, agent_raw_get(object, "kind"), pool)
        && read_text(identity->account_id, sizeof(identity->account_id),
                     agent_raw_get(object, "account_id"), pool)
        && read_text(out->region, sizeof(out->region),
                     agent_raw_get(object, "region"), pool)
        && read_deployment(identity, object, pool)
        && read_user(&identity->user_id, agent_raw_get(object, "user_id"), pool)
        && read_scopes(&identity->scopes, agent_raw_get(object, "scopes"), pool)
        && read_expiry(&identity->expires_at,
                       agent_raw_get(object, "expires_in_ms"), begun_at)
        && read_flag(&out->is_use_recorded, agent_raw_get(object, "is_used"));
}
