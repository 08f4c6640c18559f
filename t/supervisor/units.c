/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* Parts of the supervisor that need neither a runner nor a database. */
#include "../unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <apr_strings.h>

#include "../../mod_agent/supervisor/instance.h"
#include "../../mod_agent/supervisor/process/process.h"
#include "../../mod_agent/supervisor/runner/protocol/protocol.h"

#define RUN         "\"run_id\":\"01890000-0000-7000-8000-00000000abcd\",\"epoch\":3"
#define ID          "\"checkpoint_id\":\"01890000-0000-7000-8000-000000000001\""
#define WITH_VALUES "{\"type\":\"event\"," RUN ",\"event\":\"x\"," ID
#define CHECKPOINT                                                             \
    "{\"type\":\"checkpoint\"," RUN "," ID ",\"parent\":null,\"values\":{},"   \
    "\"next\":[],\"tasks\":[],\"metadata\":{}}"

static const char *read_line(agent_line_t *line, const char *text)
{
    memset(line, 0, sizeof(*line));
    return agent_protocol_read(line, text, strlen(text));
}

static void a_line_of_each_type_is_parsed(void **state)
{
    agent_line_t line;

    assert_null(read_line(&line,
                          "{\"type\":\"event\"," RUN
                          ",\"event\":\"values|x\",\"data\":null}"));
    assert_int_equal(line.type, AGENT_LINE_EVENT);
    assert_int_equal(line.key.epoch, 3);
    assert_memory_equal(line.key.run_id, "01890000-0000-7000-8000-00000000abcd",
                        36);
    assert_null(read_line(
        &line, "{" RUN ",\"event\":\"values\"," ID ",\"type\":\"event\"}"));
    assert_null(read_line(&line, CHECKPOINT));
    assert_int_equal(line.type, AGENT_LINE_CHECKPOINT);
    assert_null(read_line(&line,
                          "{\"type\":\"end\"," RUN
                          ",\"status\":\"success\",\"error\":null}"));
    assert_true(line.success);
    assert_null(read_line(&line,
                          " { \"type\" : \"end\" , " RUN
                          ",\"status\":\"error\",\"error\":{}} "));
    assert_int_equal(line.type, AGENT_LINE_END);
    assert_false(line.success);
    assert_false(line.is_drained);
    assert_null(
        read_line(&line, "{\"type\":\"ready\",\"graphs\":{},\"slots\":7}"));
    assert_int_equal(line.slots, 7);
    assert_null(line.runtime);
    assert_null(read_line(&line,
                          "{\"type\":\"ready\",\"graphs\":{},\"slots\":7,"
                          "\"runtime\":{\"language\":\"c\"}}"));
    assert_int_equal(line.runtime_length, strlen("{\"language\":\"c\"}"));
    assert_null(read_line(&line, "{\"type\":\"pong\",\"id\":12}"));
    assert_int_equal(line.ping_id, 12);
}

static void a_request_is_parsed(void **state)
{
    agent_line_t line;

    assert_null(
        read_line(&line,
                  "{\"type\":\"request\"," RUN
                  ",\"id\":7,\"op\":\"state.get\",\"cursor\":\"2.10\"}"));
    assert_int_equal(line.type, AGENT_LINE_REQUEST);
    assert_int_equal(line.key.epoch, 3);
    assert_int_equal(line.request_id, 7);
    assert_int_equal(line.op_length, 9);
    assert_memory_equal(line.op, "state.get", 9);
    assert_int_equal(line.cursor_length, 4);
    assert_memory_equal(line.cursor, "2.10", 4);
    assert_null(read_line(&line,
                          "{\"type\":\"request\"," RUN
                          ",\"id\":0,\"op\":\"x\",\"cursor\":null}"));
    assert_int_equal(line.cursor_length, 0);
    assert_null(read_line(
        &line, "{\"type\":\"request\"," RUN ",\"id\":0,\"op\":\"x\"}"));
    assert_int_equal(line.cursor_length, 0);
}

/* A request; bytes: the length of its arguments. */
static const char *read_long(const char *op, int bytes, apr_pool_t *pool)
{
    agent_line_t line;
    const char *text = apr_psprintf(pool,
                                    "{\"type\":\"request\"," RUN
                                    ",\"id\":0,\"op\":\"%s\",\"args\":{%*s}}",
                                    op, bytes - 2, "");

    return agent_protocol_read(&line, text, strlen(text));
}

static void only_requests_to_the_store_have_long_arguments(void **state)
{
    assert_null(read_long("blob.get", 4096, *state));
    assert_non_null(read_long("blob.get", 4097, *state));
    assert_non_null(read_long("stores", 4097, *state));
    assert_null(read_long("store", 4194304, *state));
    assert_non_null(read_long("store", 4194305, *state));
}

static void an_event_with_values_has_data_and_a_path_or_neither(void **state)
{
    agent_line_t line;

    assert_null(read_line(&line, WITH_VALUES ",\"data\":{},\"path\":[\"a\"]}"));
    assert_non_null(read_line(&line, WITH_VALUES ",\"data\":{}}"));
    assert_non_null(read_line(&line, WITH_VALUES ",\"path\":[]}"));
    assert_non_null(read_line(&line, WITH_VALUES ",\"data\":1,\"path\":[]}"));
    assert_non_null(read_line(&line, WITH_VALUES ",\"data\":{},\"path\":1}"));
}

static void lines_that_break_the_protocol_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "null",
        "\"type\"",
        "[{\"type\":\"pong\",\"id\":1}]",
        "{}",
        "{\"type\":\"pong\"}",
        "{\"type\":\"pong\",\"id\":-1}",
        "{\"type\":\"pong\",\"id\":1.0}",
        "{\"type\":\"pong\",\"id\":99999999999999999999}",
        "{\"type\":\"pong\",\"id\":1}{",
        "{\"type\":\"pong\",\"id\":1,\"id\":1}",
        "{\"type\":\"pong\",\"id\":1,\"\\u0069d\":2}",
        "{\"type\":\"p\\u006fng\",\"id\":1}",
        "{\"type\":\"request\",\"id\":1,\"op\":\"x\"}",
        "{\"type\":\"request\"," RUN ",\"op\":\"x\"}",
        "{\"type\":\"request\"," RUN ",\"id\":1}",
        "{\"type\":\"request\"," RUN ",\"id\":1,\"op\":\"\"}",
        "{\"type\":\"request\"," RUN ",\"id\":1,\"op\":\"x\",\"cursor\":1}",
        "{\"type\":\"request\"," RUN ",\"id\":1,\"op\":\"x\",\"cursor\":\"\"}",
        "{\"type\":\"ready\",\"graphs\":[],\"slots\":1}",
        "{\"type\":\"ready\",\"graphs\":{},\"slots\":0}",
        "{\"type\":\"ready\",\"graphs\":{},\"slots\":10001}",
        "{\"type\":\"ready\",\"graphs\":{},\"slots\":1,\"runtime\":1}",
        "{\"type\":\"event\"," RUN ",\"event\":\"x\"}",
        "{\"type\":\"event\"," RUN ",\"event\":\"\",\"data\":1}",
        "{\"type\":\"event\"," RUN ",\"event\":\"a \",\"data\":1}",
        "{\"type\":\"event\"," RUN ",\"event\":\"a\\nb\",\"data\":1}",
        "{\"type\":\"event\"," RUN ",\"event\":\"\xc2\x85\",\"data\":1}",
        "{\"type\":\"event\"," RUN ",\"event\":5,\"data\":1}",
        "{\"type\":\"event\"," RUN ",\"event\":\"x\",\"data\":\"\\u0000\"}",
        "{\"type\":\"event\"," RUN ",\"event\":\"x\",\"data\":\"\\ud800\"}",
        "{\"type\":\"event\"," RUN ",\"event\":\"x\",\"data\":1e999}",
        "{\"type\":\"event\"," RUN
        ",\"event\":\"values\",\"checkpoint_id\":\"1\"}",
        "{\"type\":\"event\",\"epoch\":3,\"event\":\"x\",\"data\":1}",
        "{\"type\":\"event\",\"run_id\":\"01890000-0000-7000-8000-00000000ABCD"
        "\",\"epoch\":3,\"event\":\"x\",\"data\":1}",
        "{\"type\":\"event\",\"run_id\":\"01890000-0000-7000-8000-00000000abcd"
        "\",\"epoch\":\"3\",\"event\":\"x\",\"data\":1}",
        "{\"type\":\"end\"," RUN ",\"status\":\"pending\"}",
        "{\"type\":\"end\"," RUN ",\"status\":\"error\",\"error\":\"x\"}",
        "{\"type\":\"checkpoint\"," RUN "," ID ",\"parent\":null}",
        "{\"type\":\"checkpoint\"," RUN "," ID ",\"parent\":1,\"values\":{},"
        "\"next\":[],\"tasks\":[],\"metadata\":{}}",
        "{\"type\":\"checkpoint\"," RUN "," ID ",\"parent\":null,\"values\":"
        "[],\"next\":[],\"tasks\":[],\"metadata\":{}}",
        "{\"type\":\"checkpoint\"," RUN "," ID ",\"parent\":null,\"values\":"
        "{},\"next\":[],\"tasks\":{},\"metadata\":{}}",
    };
    agent_line_t line;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (read_line(&line, bad[i]) == NULL) {
            fail_msg("accepted: %s", bad[i]);
        }
    }
}

static void members_of_nested_values_are_ignored(void **state)
{
    agent_line_t line;

    assert_null(read_line(
        &line,
        "{\"data\":{\"type\":\"end\",\"x\":[{\"epoch\":9},\"}]\\\"{[\"]},"
        "\"type\":\"event\",\"event\":\"x\"," RUN "}"));
    assert_int_equal(line.type, AGENT_LINE_EVENT);
    assert_int_equal(line.key.epoch, 3);
    assert_non_null(
        read_line(&line, "{\"data\":{\"type\":\"pong\",\"id\":1}}"));
}

static void damaged_lines_are_read_within_their_bounds(void **state)
{
    size_t length = strlen(CHECKPOINT);
    agent_line_t line;

    srand(1);
    for (int i = 0; i < 200000; i++) {
        size_t cut = (size_t)rand() % (length + 1);
        /* As long as the line and its newline, so that a sanitizer reports a
         * read beyond them. */
        char *text = malloc(cut + 1);

        memcpy(text, CHECKPOINT, cut);
        text[cut] = '\n';
        for (int j = rand() % 4; j > 0 && cut > 0; j--) {
            text[(size_t)rand() % cut] = "{}[]\",:\\n 0\x01"[rand() % 12];
        }
        agent_protocol_read(&line, text, cut);
        free(text);
    }
}

static void lines_that_the_supervisor_makes_are_valid(void **state)
{
    apr_pool_t *pool = *state;
    agent_lease_key_t key = {.epoch = 3};
    agent_line_t line;

    memcpy(key.run_id, "01890000-0000-7000-8000-00000000abcd", 36);
    assert_null(read_line(&line, agent_protocol_metadata(&key, 1, pool)));
    assert_null(
        read_line(&line, agent_protocol_error(&key, "E", "\"\n", pool)));
    assert_null(read_line(
        &line, agent_protocol_end(&key, "timeout", "E", "text", pool)));
    assert_int_equal(line.type, AGENT_LINE_END);
}

static void a_pid_that_is_reused_is_another_process(void **state)
{
    char boot[AGENT_PROCESS_BOOT_SIZE];
    char other_boot[AGENT_PROCESS_BOOT_SIZE];
    char other_space[AGENT_PROCESS_BOOT_SIZE + 1];
    apr_int64_t start = agent_process_start_time(getpid());
    pid_t child;

    assert_true(agent_process_boot_id(boot));
    assert_true(start > 0);
    apr_cpystrn(other_boot, boot, sizeof(other_boot));
    other_boot[0] = boot[0] == '0' ? '1' : '0';
    apr_snprintf(other_space, sizeof(other_space), "%s0", boot);

    assert_false(agent_process_is_gone(boot, boot, getpid(), start));
    /* The pid belongs to another process now. */
    assert_true(agent_process_is_gone(boot, boot, getpid(), start + 1));
    assert_true(agent_process_is_gone(boot, other_boot, getpid(), start));
    /* Processes of another pid name space cannot be seen. */
    assert_false(agent_process_is_gone(boot, other_space, getpid(), start + 1));

    child = fork();
    if (child == 0) {
        _exit(0);
    }
    start = agent_process_start_time(child);
    /* Ended, not reaped. */
    assert_int_equal(
        waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
    assert_true(agent_process_is_gone(boot, boot, child, start));
    waitpid(child, NULL, 0);
    assert_true(agent_process_is_gone(boot, boot, child, start));
}

/* ---- descriptors ---- */

/* Makes two system calls fail with ENOSYS, as an old seccomp profile does. */
static void deny_calls(unsigned one, unsigned other)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, one, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, other, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
        || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        _exit(99);
    }
}

/* Closes descriptors in a child without these system calls. Returns 0 when only
 * the kept ones stay open, 1 when others do, 2 when that is reported, 3 when an
 * error is reported though none does. */
static int close_without(unsigned one, unsigned other)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        const int keep[] = {20, 30};
        bool is_done;

        for (int fd = 10; fd <= 40; fd++) {
            dup2(2, fd);
        }
        deny_calls(one, other);
        is_done = agent_process_close_fds(keep, 2);
        for (int fd = 3; fd <= 50; fd++) {
            if ((fcntl(fd, F_GETFD) >= 0) != (fd == 20 || fd == 30)) {
                _exit(is_done ? 1 : 2);
            }
        }
        _exit(is_done ? 0 : 3);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void descriptors_are_closed_without_close_range(void **state)
{
    assert_int_equal(close_without(SYS_close_range, SYS_close_range), 0);
}

static void descriptors_that_cannot_be_closed_are_reported(void **state)
{
    assert_int_equal(close_without(SYS_close_range, SYS_openat), 2);
}

static void the_memory_of_a_process_is_read(void **state)
{
    assert_true(agent_process_resident(getpid()) > 1 << 20);
    assert_true(agent_process_resident(getppid()) > 0);
    assert_int_equal(agent_process_resident(0x7fffffff), -1);
}

/* ---- connections ---- */

static int losses;
static agent_failure_t last_failure;

static void count_loss(void *part, agent_failure_t failure)
{
    losses++;
    last_failure = failure;
}

static const agent_operation_t test_operation = {.name = "test",
                                                 .fail = count_loss};

static agent_supervisor_t *make_supervisor(apr_pool_t *pool)
{
    agent_supervisor_t *sv = apr_pcalloc(pool, sizeof(*sv));
    agent_database_settings_t settings = {0};

    sv->context = apr_pcalloc(pool, sizeof(*sv->context));
    sv->context->pool = pool;
    sv->context->mode = AGENT_MODE_RUNNING;
    agent_poll_init(&sv->poll, sv->context);
    agent_database_init(&sv->control, sv->context, &sv->poll, &settings);
    agent_database_init(&sv->bulk, sv->context, &sv->poll, &settings);
    sv->worker.context = sv->context;
    sv->worker.bulk = &sv->bulk;
    agent_worker_init(&sv->worker);
    return sv;
}

static void an_operation_fails_when_its_connection_is_closed(void **state)
{
    agent_supervisor_t *sv = make_supervisor(*state);
    agent_database_t *databases[] = {&sv->control, &sv->bulk};

    for (int i = 0; i < 2; i++) {
        losses = 0;
        databases[i]->operation = &test_operation;
        databases[i]->state = AGENT_DATABASE_BUSY;
        agent_database_close(databases[i], AGENT_FAILURE_RETRY);
        assert_int_equal(databases[i]->state, AGENT_DATABASE_DOWN);
        assert_int_equal(losses, 1);
        assert_int_equal(last_failure, AGENT_FAILURE_RETRY);
        /* It fails once only. */
        agent_database_close(databases[i], AGENT_FAILURE_RETRY);
        databases[i]->state = AGENT_DATABASE_IDLE;
        agent_database_close(databases[i], AGENT_FAILURE_RETRY);
        assert_int_equal(losses, 1);
    }
}

/* ---- the end of the supervisor ---- */

/* A worker that failed to release the runs of a dead one, together and one by
 * one. */
static agent_supervisor_t *make_failing_worker(apr_pool_t *pool)
{
    agent_supervisor_t *sv = make_supervisor(pool);

    apr_cpystrn(sv->worker.id, "7", sizeof(sv->worker.id));
    sv->worker.state = AGENT_WORKER_LIVE;
    agent_worker_add_dead(&sv->worker, "5", true);
    agent_worker_add_dead(&sv->worker, "6", true);
    sv->worker.dead_limit.current = 1;
    sv->worker.run_error = agent_fail_run_error(AGENT_FAILURE_TIMEOUT);
    return sv;
}

static const char *get_dead_id(const agent_supervisor_t *sv, int index)
{
    return APR_ARRAY_IDX(sv->worker.dead, index, agent_dead_t).id;
}

static void a_worker_that_deregisters_releases_only_its_own_runs(void **state)
{
    agent_supervisor_t *sv = make_failing_worker(*state);

    agent_worker_deregister(&sv->worker);
    assert_int_equal(sv->worker.dead->nelts, 1);
    assert_string_equal(get_dead_id(sv, 0), "7");
    assert_null(sv->worker.run_error);
    assert_true(sv->worker.dead_limit.current > 1);
}

static void a_dead_worker_in_flight_stays_first(void **state)
{
    agent_supervisor_t *sv = make_failing_worker(*state);

    sv->bulk.operation = &agent_mark_dead_operation;
    sv->bulk.part = &sv->worker;
    sv->bulk.state = AGENT_DATABASE_BUSY;
    agent_worker_deregister(&sv->worker);
    assert_int_equal(sv->worker.dead->nelts, 2);
    assert_string_equal(get_dead_id(sv, 0), "5");
    assert_string_equal(get_dead_id(sv, 1), "7");
    assert_non_null(sv->worker.run_error);
    assert_int_equal(sv->worker.dead_limit.current, 1);
    /* After the loss of the connection the same statement is sent again. */
    agent_database_close(&sv->bulk, AGENT_FAILURE_RETRY);
    assert_string_equal(get_dead_id(sv, 0), "5");
    assert_non_null(sv->worker.run_error);
}

/* ---- start lines ---- */

/* A killed runner may hang in a system call; start lines for other runners must
 * not wait for it. */
static void unread_input_of_a_killed_runner_does_not_count(void **state)
{
    agent_supervisor_t *sv = apr_pcalloc(*state, sizeof(*sv));
    agent_runner_t *runner = apr_pcalloc(*state, sizeof(*runner));
    char *line = apr_pcalloc(*state, AGENT_START_ALL_BYTES);

    sv->context = apr_pcalloc(*state, sizeof(*sv->context));
    sv->context->pool = *state;
    sv->context->config = apr_pcalloc(*state, sizeof(*sv->context->config));
    agent_runner_init(&sv->runners, sv->context, NULL);
    sv->runners.spawner.fd = -1;
    runner->runner_pool = apr_pcalloc(*state, sizeof(*runner->runner_pool));
    agent_pool_init(runner->runner_pool, &sv->runners.lists);
    APR_RING_INIT(&runner->runner_pool->runners, agent_runner_t, pool_link);
    agent_runner_link(&sv->runners, runner);
    agent_buffer_init(&runner->input, *state);
    assert_int_equal(agent_start_claim_bytes(&sv->runners),
                     AGENT_START_CLAIM_BYTES);
    agent_buffer_append(agent_runner_input(runner), line,
                        AGENT_START_ALL_BYTES);
    assert_int_equal(agent_start_claim_bytes(&sv->runners), 0);
    agent_runner_kill(&sv->runners, runner, AGENT_LOSS_COUNTED, "a test");
    assert_int_equal(agent_start_claim_bytes(&sv->runners),
                     AGENT_START_CLAIM_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_line_of_each_type_is_parsed),
        CHECK_TEST(a_request_is_parsed),
        CHECK_TEST(only_requests_to_the_store_have_long_arguments),
        CHECK_TEST(lines_that_break_the_protocol_are_refused),
        CHECK_TEST(an_event_with_values_has_data_and_a_path_or_neither),
        CHECK_TEST(members_of_nested_values_are_ignored),
        CHECK_TEST(damaged_lines_are_read_within_their_bounds),
        CHECK_TEST(lines_that_the_supervisor_makes_are_valid),
        CHECK_TEST(a_pid_that_is_reused_is_another_process),
        CHECK_TEST(descriptors_are_closed_without_close_range),
        CHECK_TEST(descriptors_that_cannot_be_closed_are_reported),
        CHECK_TEST(the_memory_of_a_process_is_read),
        CHECK_TEST(an_operation_fails_when_its_connection_is_closed),
        CHECK_TEST(a_worker_that_deregisters_releases_only_its_own_runs),
        CHECK_TEST(a_dead_worker_in_flight_stays_first),
        CHECK_TEST(unread_input_of_a_killed_runner_does_not_count),
    };

    return CHECK_RUN(tests);
}
