/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: model/account.c core/error.c core/uuid.c */
/* The secrets of new keys do not stay in the memory of a server. */
#include "check.h"

#include <string.h>

#include <openssl/crypto.h>

#include "../../mod_agent/model/account.h"

/* In place of the sources that would make a key and store it. */
static agent_new_key_t *made;
static bool can_make, can_store, can_show;
static bool is_wiped;

bool agent_new_key_make(agent_new_key_t *out)
{
    memset(out, 's', sizeof(*out));
    made = out;
    return can_make;
}

const char *agent_new_key_show(const agent_new_key_t *key, const char *record,
                               apr_pool_t *pool)
{
    return can_show ? "shown" : NULL;
}

apr_status_t agent_db_pool_call(const char **body, agent_db_pool_t *connections,
                                const agent_statement_t *statement,
                                const char *const *params, agent_error_t **err,
                                apr_pool_t *pool)
{
    *body = "record";
    assert_ptr_equal(params[statement->params - 2], made->id_text);
    assert_ptr_equal(params[statement->params - 1], made->digest);
    assert_false(is_wiped);
    return can_store ? APR_SUCCESS : APR_EGENERAL;
}

apr_status_t agent_db_pool_call_extra(const char **body, const char **extra,
                                      agent_db_pool_t *connections,
                                      const agent_statement_t *statement,
                                      const char *const *params,
                                      agent_error_t **err, apr_pool_t *pool)
{
    return APR_EGENERAL;
}

/* In place of libcrypto's. */
void OPENSSL_cleanse(void *ptr, size_t len)
{
    const char *first = ptr;
    const char *secret = (const char *)made->secret;

    is_wiped |= first <= secret && secret + sizeof(made->secret) <= first + len;
}

typedef apr_status_t (*create_t)(const char **body, agent_error_t **err,
                                 apr_pool_t *pool);

static apr_status_t sign_up(const char **body, agent_error_t **err,
                            apr_pool_t *pool)
{
    const agent_raw_t name = {"\"n\"", 3};

    return agent_account_sign_up(body, NULL, name, NULL, err, pool);
}

static apr_status_t create(const char **body, agent_error_t **err,
                           apr_pool_t *pool)
{
    return agent_account_create_key(body, NULL, "key", "{}", err, pool);
}

static apr_status_t rotate(const char **body, agent_error_t **err,
                           apr_pool_t *pool)
{
    const agent_account_key_change_t change = {"key", "old"};

    return agent_account_rotate_key(body, NULL, &change, "{}", err, pool);
}

/* Each way to a new key, whose step fails at the first one that cannot be done.
 */
static void check(apr_status_t expected, apr_pool_t *pool)
{
    static const create_t ways[] = {sign_up, create, rotate};

    for (int i = 0; i < 3; i++) {
        const char *body = NULL;
        agent_error_t *err = NULL;

        is_wiped = false;
        assert_int_equal(ways[i](&body, &err, pool), expected);
        assert_true(is_wiped);
    }
}

static void the_secret_of_a_key_that_is_shown_is_wiped(void **state)
{
    can_make = can_store = can_show = true;
    check(APR_SUCCESS, *state);
}

static void it_is_wiped_when_the_statement_fails(void **state)
{
    can_make = true;
    can_store = false;
    check(APR_EGENERAL, *state);
}

static void it_is_wiped_when_the_record_cannot_be_shown(void **state)
{
    can_make = can_store = true;
    can_show = false;
    check(APR_EGENERAL, *state);
}

static void it_is_wiped_when_the_key_was_made_in_part(void **state)
{
    can_make = false;
    check(APR_EGENERAL, *state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(the_secret_of_a_key_that_is_shown_is_wiped),
        CHECK_TEST(it_is_wiped_when_the_statement_fails),
        CHECK_TEST(it_is_wiped_when_the_record_cannot_be_shown),
        CHECK_TEST(it_is_wiped_when_the_key_was_made_in_part)};

    return CHECK_RUN(tests);
}
