/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: auth/key_cache.c core/lock.c core/child_thread.c */
/* Verified keys that a child keeps for a while. */
#include "check.h"

#include <stdio.h>
#include <string.h>

#include "../../mod_agent/auth/key_cache.h"

typedef char text_t[AGENT_API_KEY_SIZE];

static agent_key_cache_t *make_cache(int size, apr_pool_t *pool)
{
    agent_key_cache_t *cache;

    assert_int_equal(agent_key_cache_create(&cache, size, pool), APR_SUCCESS);
    return cache;
}

static void make_text(text_t out, int number)
{
    snprintf(out, sizeof(text_t), "ag1_us_sk_%d", number);
}

static void add(agent_key_cache_t *cache, int number, const char *user_id,
                apr_time_t until)
{
    agent_identity_t identity = {.scopes = (unsigned)number,
                                 .user_id = user_id};
    text_t text;

    make_text(text, number);
    agent_key_cache_add(cache, text, &identity, until);
}

static bool has(agent_key_cache_t *cache, int number, apr_time_t now,
                apr_pool_t *pool)
{
    agent_identity_t found;
    text_t text;

    make_text(text, number);
    if (!agent_key_cache_find(&found, cache, text, now, pool)) {
        return false;
    }
    assert_int_equal(found.scopes, (unsigned)number);
    return true;
}

static void a_key_is_found_until_its_time(void **state)
{
    agent_key_cache_t *cache = make_cache(4, *state);

    assert_false(has(cache, 1, 0, *state));
    add(cache, 1, NULL, 100);
    assert_true(has(cache, 1, 99, *state));
    assert_false(has(cache, 1, 100, *state));
    assert_false(has(cache, 2, 99, *state));
    add(cache, 1, NULL, 200);
    assert_true(has(cache, 1, 199, *state));
}

static void every_character_of_a_key_counts(void **state)
{
    agent_key_cache_t *cache = make_cache(1, *state);
    agent_identity_t identity = {.user_id = NULL};
    text_t text;

    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    agent_key_cache_add(cache, text, &identity, 100);
    for (size_t i = 0; i < sizeof(text) - 1; i++) {
        text[i] = 'b';
        assert_false(agent_key_cache_find(&identity, cache, text, 0, *state));
        text[i] = 'a';
    }
    assert_true(agent_key_cache_find(&identity, cache, text, 0, *state));
    text[sizeof(text) - 2] = '\0';
    assert_false(agent_key_cache_find(&identity, cache, text, 0, *state));
}

static void the_identity_that_is_found_is_a_copy(void **state)
{
    agent_key_cache_t *cache = make_cache(1, *state);
    char user[] = "ann";
    agent_identity_t found;
    text_t text;

    make_text(text, 1);
    add(cache, 1, user, 100);
    user[0] = 'x';
    assert_true(agent_key_cache_find(&found, cache, text, 0, *state));
    add(cache, 2, "eve", 100);
    assert_string_equal(found.user_id, "ann");
}

static void the_oldest_key_makes_room_for_a_new_one(void **state)
{
    agent_key_cache_t *cache = make_cache(3, *state);

    for (int i = 1; i <= 3; i++) {
        add(cache, i, NULL, 100);
    }
    /* Added once more, it is the newest. */
    add(cache, 1, NULL, 100);
    assert_true(has(cache, 1, 0, *state));
    assert_true(has(cache, 2, 0, *state));
    add(cache, 4, NULL, 100);
    assert_false(has(cache, 2, 0, *state));
    assert_true(has(cache, 1, 0, *state));
    for (int i = 5; i < 1000; i++) {
        add(cache, i, NULL, 100);
        assert_true(has(cache, i, 0, *state));
        assert_false(has(cache, i - 3, 0, *state));
    }
}

static void a_key_with_a_user_that_is_too_long_is_not_kept(void **state)
{
    agent_key_cache_t *cache = make_cache(3, *state);
    char user[AGENT_KEY_USER_SIZE + 1];

    memset(user, 'u', sizeof(user));
    user[AGENT_KEY_USER_SIZE] = '\0';
    add(cache, 1, user, 100);
    assert_false(has(cache, 1, 0, *state));
    user[AGENT_KEY_USER_SIZE - 1] = '\0';
    add(cache, 1, user, 100);
    assert_true(has(cache, 1, 0, *state));
}

static void an_identity_is_good_until_its_expiry_or_the_time_of_the_cache(
    void **state)
{
    agent_identity_t identity = {.checked_at = 1000};

    identity.expires_at = 1000 + AGENT_KEY_CACHE_TIME + 1;
    assert_int_equal(agent_key_cache_until(&identity),
                     1000 + AGENT_KEY_CACHE_TIME);
    identity.expires_at = 1001;
    assert_int_equal(agent_key_cache_until(&identity), 1001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(
            an_identity_is_good_until_its_expiry_or_the_time_of_the_cache),
        CHECK_TEST(a_key_is_found_until_its_time),
        CHECK_TEST(every_character_of_a_key_counts),
        CHECK_TEST(the_identity_that_is_found_is_a_copy),
        CHECK_TEST(the_oldest_key_makes_room_for_a_new_one),
        CHECK_TEST(a_key_with_a_user_that_is_too_long_is_not_kept)};

    return CHECK_RUN(tests);
}
