/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* The pauses of a pool after runners that failed to start; see
 * supervisor/runner/pool/pool.h. */
#include "check.h"

#include "../../mod_agent/supervisor/runner/pool/pool.h"

#define NOW        apr_time_from_sec(1000)
#define ORDINARY   0
#define QUARANTINE 1

typedef struct fixture_t {
    agent_pool_config_t pool_config;
    agent_supervisor_config_t config;
    agent_context_t context;
    agent_runner_pool_t pool;
} fixture_t;

static void ignore_log(void *baton, agent_log_level_t level, const char *id,
                       apr_status_t rv, const char *text)
{
}

static fixture_t *make_fixture(apr_pool_t *pool)
{
    fixture_t *f = apr_pcalloc(pool, sizeof(*f));

    f->pool_config.name = "default";
    f->config.log.write = ignore_log;
    f->context = (agent_context_t){
        .pool = pool, .config = &f->config, .now = NOW};
    f->pool.config = &f->pool_config;
    return f;
}

/* Milliseconds until the next runner of a kind may start after one more
 * failure. */
static int fail_once(fixture_t *f, int max_shared)
{
    const agent_runner_pause_t *pause = max_shared == ORDINARY
        ? &f->pool.ordinary
        : &f->pool.quarantined;

    agent_pool_count_failure(&f->pool, &f->context, max_shared);
    return (int)apr_time_as_msec(pause->start_at - NOW);
}

static void assert_growing_pauses(fixture_t *f, int max_shared)
{
    static const int expected[] = {100, 200, 400, 800, 1600, 3200, 5000, 5000};

    for (int i = 0; i < 8; i++) {
        assert_int_equal(fail_once(f, max_shared), expected[i]);
    }
}

static void pauses_after_failed_starts_double_from_100_ms_to_5_s(void **state)
{
    assert_growing_pauses(make_fixture(*state), ORDINARY);
    assert_growing_pauses(make_fixture(*state), QUARANTINE);
}

static void ordinary_and_quarantine_runners_have_separate_pauses(void **state)
{
    fixture_t *f = make_fixture(*state);

    assert_growing_pauses(f, QUARANTINE);
    assert_true(f->pool.ordinary.start_at == 0);
    assert_growing_pauses(f, ORDINARY);
}

static void a_success_ends_the_pauses_of_its_kind(void **state)
{
    fixture_t *f = make_fixture(*state);

    assert_growing_pauses(f, ORDINARY);
    assert_growing_pauses(f, QUARANTINE);
    agent_pool_count_success(&f->pool, ORDINARY);
    assert_int_equal(fail_once(f, ORDINARY), 100);
    assert_int_equal(fail_once(f, QUARANTINE), 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(pauses_after_failed_starts_double_from_100_ms_to_5_s),
        CHECK_TEST(ordinary_and_quarantine_runners_have_separate_pauses),
        CHECK_TEST(a_success_ends_the_pauses_of_its_kind),
    };

    return CHECK_RUN(tests);
}
