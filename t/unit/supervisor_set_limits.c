/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* When the supervisor stores the limits of accounts; see
 * supervisor/statement/set_limits.h. */
#include "check.h"

#include <libpq-fe.h>

#include "../../mod_agent/supervisor/statement/set_limits.h"

#define NOW apr_time_from_sec(1000)

static const agent_operation_t *const operation = &agent_set_limits_operation;

typedef struct fixture_t {
    agent_supervisor_config_t config;
    agent_context_t context;
    agent_database_t database;
    agent_set_limits_t limits;
} fixture_t;

static void set_up(fixture_t *f)
{
    *f = (fixture_t){.config = {.limits = {.text = "[]"}}};
    f->context.config = &f->config;
    f->context.now = NOW;
    f->database.context = &f->context;
    f->database.connection = 1;
    f->limits.database = &f->database;
}

static void limits_are_stored_before_anything_else_is_sent(void **state)
{
    fixture_t f;

    set_up(&f);
    assert_true(operation->is_urgent);
    assert_true(operation->due(&f.limits) <= NOW);
}

static void limits_are_stored_once_on_each_connection(void **state)
{
    fixture_t f;

    set_up(&f);
    f.limits.connection = f.database.connection;
    assert_true(operation->due(&f.limits) == AGENT_CLOCK_NEVER);
    f.database.connection++;
    assert_true(operation->due(&f.limits) <= NOW);
}

static void limits_that_were_refused_are_sent_again_after_10_seconds(
    void **state)
{
    fixture_t f;

    set_up(&f);
    /* In brackets: cmocka has a macro of that name. */
    (operation->fail)(&f.limits, AGENT_FAILURE_TIMEOUT);
    assert_in_range(apr_time_as_msec(operation->due(&f.limits) - NOW), 8000,
                    12000);
    (operation->fail)(&f.limits, AGENT_FAILURE_LOST);
    assert_true(operation->due(&f.limits) <= NOW);
}

/* The result of a database that accepts no writes, or of one that does. */
static void receive(fixture_t *f, bool accepts_writes)
{
    PGresAttDesc column = {.name = (char *)"replaced"};
    PGresult *rows = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);

    assert_true(PQsetResultAttrs(rows, 1, &column));
    if (!accepts_writes) {
        assert_true(PQsetvalue(rows, 0, 0, NULL, -1));
    }
    operation->receive(&f->limits, (const agent_db_result_t *)&rows);
    PQclear(rows);
}

static void a_database_that_accepts_no_writes_is_asked_again(void **state)
{
    fixture_t f;

    set_up(&f);
    receive(&f, false);
    assert_in_range(apr_time_as_msec(operation->due(&f.limits) - NOW), 8000,
                    12000);
    receive(&f, true);
    assert_true(operation->due(&f.limits) == AGENT_CLOCK_NEVER);
}

static void a_host_without_limits_stores_none(void **state)
{
    fixture_t f;

    set_up(&f);
    f.config.limits.text = NULL;
    assert_true(operation->due(&f.limits) == AGENT_CLOCK_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(limits_are_stored_before_anything_else_is_sent),
        CHECK_TEST(limits_are_stored_once_on_each_connection),
        CHECK_TEST(limits_that_were_refused_are_sent_again_after_10_seconds),
        CHECK_TEST(a_database_that_accepts_no_writes_is_asked_again),
        CHECK_TEST(a_host_without_limits_stores_none),
    };

    return CHECK_RUN(tests);
}
