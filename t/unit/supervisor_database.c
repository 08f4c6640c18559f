/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ supervisor/lease/ supervisor/process/ */
/* OBJECTS: supervisor/runner/ supervisor/statement/ supervisor/webhook/ */
/* OBJECTS: core/ db/query.c db/send.c db/connection.c db/array.c */
/* A connection whose socket is lost; see supervisor/statement/database.h. */
#include "check.h"

#include <unistd.h>

#include "../../mod_agent/db/connection.h"
#include "../../mod_agent/supervisor/statement/database.h"

#define NOW apr_time_from_sec(1000)

typedef struct fixture_t {
    agent_context_t context;
    agent_supervisor_config_t config;
    agent_poll_t poll;
    agent_database_t database;
    /* Without a connection of libpq, so without a socket. */
    agent_db_t db;
    int losses;
    agent_failure_t last_failure;
} fixture_t;

static void ignore_log(void *baton, agent_log_level_t level, const char *id,
                       apr_status_t rv, const char *text)
{
}

static void count_loss(void *part, agent_failure_t failure)
{
    fixture_t *f = part;

    f->losses++;
    f->last_failure = failure;
}

static const agent_operation_t operation = {.name = "test", .fail = count_loss};

/* A connection that waits for a result, and that libpq has closed at an error
 * that is not known yet: the number may be a runner's pipe now. */
static fixture_t *make_fixture(apr_pool_t *pool)
{
    fixture_t *f = apr_pcalloc(pool, sizeof(*f));
    agent_database_settings_t settings = {0};

    f->context.pool = pool;
    f->context.now = NOW;
    f->context.config = &f->config;
    f->config.log.write = ignore_log;
    agent_poll_init(&f->poll, &f->context);
    agent_database_init(&f->database, &f->context, &f->poll, &settings);
    f->database.db = &f->db;
    f->database.watch.fd = STDIN_FILENO;
    f->database.events = f->database.watch.events = EPOLLIN;
    f->database.state = AGENT_DATABASE_BUSY;
    f->database.deadline = AGENT_CLOCK_NEVER;
    return f;
}

static void a_connection_without_a_socket_is_made_again_at_once(void **state)
{
    fixture_t *f = make_fixture(*state);

    f->database.operation = &operation;
    f->database.part = f;
    assert_true(agent_database_step(&f->database) == NOW);
    assert_int_equal(f->database.state, AGENT_DATABASE_DOWN);
    assert_int_equal(f->database.watch.fd, -1);
    assert_int_equal(f->losses, 1);
    assert_int_equal(f->last_failure, AGENT_FAILURE_LOST);
}

/* A refusal at each attempt would be a busy loop. */
static void one_that_was_being_made_is_made_again_after_a_pause(void **state)
{
    fixture_t *f = make_fixture(*state);

    f->database.operation = NULL;
    assert_true(agent_database_step(&f->database) > NOW);
    assert_int_equal(f->database.state, AGENT_DATABASE_DOWN);
    assert_int_equal(f->losses, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_connection_without_a_socket_is_made_again_at_once),
        CHECK_TEST(one_that_was_being_made_is_made_again_after_a_pause),
    };

    return CHECK_RUN(tests);
}
