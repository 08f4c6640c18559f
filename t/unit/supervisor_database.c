/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* A connection whose socket or pipeline is lost; see
 * supervisor/statement/database.h. */
#include "check.h"

#include <string.h>
#include <unistd.h>

#include <apr_strings.h>

#include "../../mod_agent/core/clock.h"
#include "../../mod_agent/db/connection.h"
#include "../../mod_agent/supervisor/statement/database.h"

#define NOW   apr_time_from_sec(1000)
#define LATER (NOW + apr_time_from_sec(3))
/* Many more than a connection has. */
#define OPERATIONS 100

typedef struct fixture_t {
    agent_context_t context;
    agent_supervisor_config_t config;
    agent_poll_t poll;
    agent_database_t database;
    /* Without a connection of libpq, so without a socket. */
    agent_db_t db;
    int results;
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

static void count_result(void *part, const agent_db_result_t *result)
{
    fixture_t *f = part;

    f->results++;
}

static apr_time_t due_never(void *part)
{
    *(int *)part += 1;
    return AGENT_CLOCK_NEVER;
}

static void ignore_connection(void *part, bool is_first,
                              const agent_session_info_t *info)
{
}

static const agent_operation_t operation = {
    .name = "test", .receive = count_result, .fail = count_loss};

/* ---- libpq, for a connection that has the end of a pipeline to read ---- */

static int fake_connection;
static int can_exit_pipeline;

/* When the last attempt to resolve a name ended. */
static apr_time_t resolved_at;
/* The parameters of the last connection beside another one. */
static char address[100];

char *PQhost(const PGconn *conn)
{
    return "db.test";
}

char *PQhostaddr(const PGconn *conn)
{
    return "192.0.2.1";
}

char *PQport(const PGconn *conn)
{
    return "5433";
}

/* Resolves a name for longer than the first pause, in vain. */
PGconn *PQconnectStartParams(const char *const *keywords,
                             const char *const *values, int expand_dbname)
{
    apr_time_t end = agent_clock_now() + apr_time_from_msec(200);

    address[0] = '\0';
    for (int i = 0; keywords[i] != NULL; i++) {
        if (strcmp(keywords[i], "host") == 0
            || strcmp(keywords[i], "hostaddr") == 0
            || strcmp(keywords[i], "port") == 0) {
            apr_snprintf(address + strlen(address),
                         sizeof(address) - strlen(address), " %s",
                         values[i] != NULL ? values[i] : "-");
        }
    }
    while ((resolved_at = agent_clock_now()) < end) {
    }
    return NULL;
}

static const char *error_state;
static const char *severity;

ConnStatusType PQstatus(const PGconn *conn)
{
    return CONNECTION_OK;
}

char *PQresultErrorField(const PGresult *result, int field)
{
    if (field == PG_DIAG_SEVERITY_NONLOCALIZED) {
        return (char *)severity;
    }
    return field == PG_DIAG_SQLSTATE ? (char *)error_state : NULL;
}

int PQsocket(const PGconn *conn)
{
    return STDIN_FILENO;
}

int PQconsumeInput(PGconn *conn)
{
    return 1;
}

int PQisBusy(PGconn *conn)
{
    return 0;
}

PGresult *PQgetResult(PGconn *conn)
{
    return PQmakeEmptyPGresult(NULL, PGRES_PIPELINE_SYNC);
}

int PQexitPipelineMode(PGconn *conn)
{
    return can_exit_pipeline;
}

void PQfinish(PGconn *conn)
{
}

/* A result of an operation, or with NULL that of a new session. */
static void receive(fixture_t *f, const agent_operation_t *sent, bool can_exit)
{
    f->db = (agent_db_t){0};
    f->database.db = &f->db;
    f->database.state = AGENT_DATABASE_BUSY;
    f->database.watch.fd = STDIN_FILENO;
    f->db.conn = (PGconn *)&fake_connection;
    f->db.partial = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    f->database.operation = sent;
    f->database.part = f;
    can_exit_pipeline = can_exit;
    f->database.watch.handler(f->database.watch.part, NULL);
}

/* Receives the result of a statement that was sent with its preparation. */
static void receive_pipeline(fixture_t *f, bool can_exit)
{
    int results = f->results;

    receive(f, &operation, can_exit);
    assert_int_equal(f->results, results + 1);
    assert_int_equal(f->losses, 0);
}

/* An operation fails with that error: at NOW before its limit, at LATER at it.
 */
static void fail_with(fixture_t *f, const char *how, const char *sqlstate)
{
    f->db = (agent_db_t){.conn = (PGconn *)&fake_connection};
    f->db.partial = PQmakeEmptyPGresult(NULL, PGRES_FATAL_ERROR);
    f->database.operation = &operation;
    f->database.part = f;
    f->database.state = AGENT_DATABASE_BUSY;
    f->database.sent_at = NOW;
    f->database.limit = LATER - NOW;
    error_state = sqlstate;
    severity = how;
    can_exit_pipeline = 1;
    f->database.watch.handler(f->database.watch.part, NULL);
}

/* A connection that waits for a result, and that libpq has closed at an error
 * that is not known yet: the number may be a runner's pipe now. */
static fixture_t *make_fixture(apr_pool_t *pool)
{
    fixture_t *f = apr_pcalloc(pool, sizeof(*f));
    agent_database_settings_t settings = {.on_connected = ignore_connection};

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
static void a_connection_lost_while_it_is_made_is_made_again_after_a_pause(
    void **state)
{
    fixture_t *f = make_fixture(*state);

    f->database.operation = NULL;
    assert_true(agent_database_step(&f->database) > NOW);
    assert_int_equal(f->database.state, AGENT_DATABASE_DOWN);
    assert_int_equal(f->losses, 0);
}

static void a_connection_is_idle_after_its_pipeline(void **state)
{
    fixture_t *f = make_fixture(*state);

    receive_pipeline(f, true);
    assert_int_equal(f->database.state, AGENT_DATABASE_IDLE);
}

/* The next statement on it would hang until its deadline. */
static void a_connection_whose_pipeline_does_not_end_is_made_again(void **state)
{
    fixture_t *f = make_fixture(*state);

    receive_pipeline(f, false);
    assert_int_equal(f->database.state, AGENT_DATABASE_DOWN);
    assert_true(f->database.connect_at == NOW);
}

/* Each would be a new process of the server, 100 times a second. */
static void connections_lost_in_a_row_are_made_again_after_longer_pauses(
    void **state)
{
    fixture_t *f = make_fixture(*state);
    apr_interval_time_t pause = 0;

    for (int i = 0; i < 10; i++) {
        receive_pipeline(f, false);
        assert_true(f->database.connect_at >= NOW + pause * 4 / 5);
        assert_true(f->database.connect_at <= NOW + pause * 6 / 5);
        pause = i == 0 ? apr_time_from_msec(100) : 2 * pause;
        pause = pause < apr_time_from_sec(1) ? pause : apr_time_from_sec(1);
    }
}

static void a_connection_that_outlives_a_statement_ends_the_pauses(void **state)
{
    fixture_t *f = make_fixture(*state);

    receive_pipeline(f, false);
    receive_pipeline(f, true);
    receive_pipeline(f, false);
    assert_true(f->database.connect_at == NOW);
}

/* The session of each connection begins with success. */
static void a_connection_without_a_statement_does_not_end_the_pauses(
    void **state)
{
    fixture_t *f = make_fixture(*state);

    receive_pipeline(f, false);
    receive(f, NULL, true);
    assert_int_equal(f->database.state, AGENT_DATABASE_IDLE);
    receive_pipeline(f, false);
    assert_true(f->database.connect_at > NOW);
}

/* Each also ends the connection, as libpq may know only later. */
static void a_fatal_error_is_the_failure_of_its_sqlstate(void **state)
{
    static const struct {
        const char *sqlstate;
        agent_failure_t failure;
    } errors[] = {
        {"57P01", AGENT_FAILURE_RETRY},    {"XX000", AGENT_FAILURE_OTHER},
        {"08P01", AGENT_FAILURE_LOST},     {"53100", AGENT_FAILURE_SHORTAGE},
        {"58030", AGENT_FAILURE_SHORTAGE}, {"25P04", AGENT_FAILURE_CANCEL},
    };

    for (int i = 0; i < 6; i++) {
        fixture_t *f = make_fixture(*state);

        fail_with(f, "FATAL", errors[i].sqlstate);
        assert_int_equal(f->database.state, AGENT_DATABASE_DOWN);
        assert_int_equal(f->losses, 1);
        assert_int_equal(f->last_failure, errors[i].failure);
    }
}

/* The server restarts: to whom the crash counts is known by its notices. */
static void a_panic_loses_the_connection(void **state)
{
    fixture_t *f = make_fixture(*state);

    fail_with(f, "PANIC", "XX000");
    assert_int_equal(f->database.state, AGENT_DATABASE_DOWN);
    assert_int_equal(f->last_failure, AGENT_FAILURE_LOST);
}

/* A pooler may send no severity that libpq knows, and closes the connection
 * next: another statement on it would be lost too. */
static void class_08_without_a_severity_loses_the_connection(void **state)
{
    static const char *const severities[] = {NULL, "FATAL"};

    for (int i = 0; i < 2; i++) {
        fixture_t *f = make_fixture(*state);

        fail_with(f, severities[i], "08P01");
        assert_int_equal(f->database.state, AGENT_DATABASE_DOWN);
        assert_int_equal(f->losses, 1);
        assert_int_equal(f->last_failure, AGENT_FAILURE_LOST);
    }
}

/* Of a trigger's connection to another server: it is rolled back. */
static void an_error_of_class_08_keeps_the_connection(void **state)
{
    fixture_t *f = make_fixture(*state);

    fail_with(f, "ERROR", "08006");
    assert_int_equal(f->database.state, AGENT_DATABASE_IDLE);
    assert_int_equal(f->last_failure, AGENT_FAILURE_RETRY);
    assert_true(agent_database_retry_at(&f->context, f->last_failure) > NOW);
}

/* A disk without room for the WAL. */
static void a_panic_without_resources_is_a_shortage(void **state)
{
    static const char *const states[] = {"53100", "53200", "58030"};

    for (int i = 0; i < 3; i++) {
        fixture_t *f = make_fixture(*state);

        fail_with(f, "PANIC", states[i]);
        assert_int_equal(f->database.state, AGENT_DATABASE_DOWN);
        assert_int_equal(f->last_failure, AGENT_FAILURE_SHORTAGE);
    }
}

static void a_statement_that_ends_before_its_limit_was_cancelled(void **state)
{
    fixture_t *f = make_fixture(*state);

    fail_with(f, "ERROR", "57014");
    assert_int_equal(f->database.state, AGENT_DATABASE_IDLE);
    assert_int_equal(f->last_failure, AGENT_FAILURE_CANCEL);
    f->context.now = LATER;
    fail_with(f, "ERROR", "57014");
    assert_int_equal(f->last_failure, AGENT_FAILURE_TIMEOUT);
}

static void a_connection_takes_any_number_of_operations(void **state)
{
    static const agent_operation_t idle = {.name = "idle", .due = due_never};
    fixture_t *f = make_fixture(*state);
    int asked[OPERATIONS] = {0};

    receive_pipeline(f, true);
    for (int i = 0; i < OPERATIONS; i++) {
        agent_database_add(&f->database, &idle, &asked[i]);
    }
    assert_true(agent_database_step(&f->database) == AGENT_CLOCK_NEVER);
    for (int i = 0; i < OPERATIONS; i++) {
        assert_int_equal(asked[i], 1);
    }
}

static void a_connection_stays_open_without_a_statement(void **state)
{
    fixture_t *f = make_fixture(*state);

    receive(f, NULL, true);
    f->context.now = NOW + apr_time_from_sec(3600);
    assert_true(agent_database_step(&f->database) == AGENT_CLOCK_NEVER);
    assert_int_equal(f->database.state, AGENT_DATABASE_IDLE);
}

/* Else the next attempt would follow at once, and other runs would get no turn
 * while no name server answers. */
static void the_pause_after_a_failed_attempt_begins_when_names_are_resolved(
    void **state)
{
    fixture_t *f = make_fixture(*state);
    apr_interval_time_t least = apr_time_from_msec(80);

    f->config.conninfo = "";
    f->context.now = agent_clock_now();
    agent_database_close(&f->database, AGENT_FAILURE_RETRY);
    assert_true(agent_database_step(&f->database) >= resolved_at + least);
    assert_true(resolved_at > 0);
    assert_int_equal(f->database.failed_connects, 1);
}

/* A name server that does not answer stops the loop. */
static void a_connection_is_made_again_to_the_address_of_another_one(
    void **state)
{
    fixture_t *f = make_fixture(*state);
    fixture_t *other = make_fixture(*state);
    const agent_database_t *connections[] = {&f->database, &other->database,
                                             NULL};

    f->config.conninfo = "";
    f->database.settings.others = connections;
    receive(other, NULL, true);
    agent_database_close(&f->database, AGENT_FAILURE_RETRY);
    agent_database_step(&f->database);
    assert_string_equal(address, " db.test 192.0.2.1 5433");
    /* The server may have moved. */
    f->database.connect_at = 0;
    agent_database_step(&f->database);
    assert_string_equal(address, " - - -");
    f->database.connect_at = 0;
    agent_database_close(&other->database, AGENT_FAILURE_LOST);
    agent_database_step(&f->database);
    assert_string_equal(address, " - - -");
    assert_int_equal(f->database.failed_connects, 3);
}

static void a_connection_is_lost_until_its_session_has_begun(void **state)
{
    fixture_t *f = make_fixture(*state);

    assert_true(agent_database_lost_at(&f->database) == NOW);
    receive(f, NULL, true);
    assert_true(agent_database_lost_at(&f->database) == AGENT_CLOCK_NEVER);
    f->context.now = LATER;
    receive_pipeline(f, false);
    assert_true(agent_database_lost_at(&f->database) == LATER);
    f->context.now++;
    agent_database_close(&f->database, AGENT_FAILURE_RETRY);
    assert_true(agent_database_lost_at(&f->database) == LATER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_connection_without_a_socket_is_made_again_at_once),
        CHECK_TEST(
            a_connection_lost_while_it_is_made_is_made_again_after_a_pause),
        CHECK_TEST(a_connection_is_idle_after_its_pipeline),
        CHECK_TEST(a_connection_whose_pipeline_does_not_end_is_made_again),
        CHECK_TEST(
            connections_lost_in_a_row_are_made_again_after_longer_pauses),
        CHECK_TEST(a_connection_that_outlives_a_statement_ends_the_pauses),
        CHECK_TEST(a_connection_without_a_statement_does_not_end_the_pauses),
        CHECK_TEST(a_fatal_error_is_the_failure_of_its_sqlstate),
        CHECK_TEST(a_panic_loses_the_connection),
        CHECK_TEST(class_08_without_a_severity_loses_the_connection),
        CHECK_TEST(an_error_of_class_08_keeps_the_connection),
        CHECK_TEST(a_panic_without_resources_is_a_shortage),
        CHECK_TEST(a_statement_that_ends_before_its_limit_was_cancelled),
        CHECK_TEST(a_connection_takes_any_number_of_operations),
        CHECK_TEST(a_connection_stays_open_without_a_statement),
        CHECK_TEST(
            the_pause_after_a_failed_attempt_begins_when_names_are_resolved),
        CHECK_TEST(a_connection_is_made_again_to_the_address_of_another_one),
        CHECK_TEST(a_connection_is_lost_until_its_session_has_begun),
    };

    return CHECK_RUN(tests);
}
