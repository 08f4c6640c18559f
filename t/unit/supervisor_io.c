/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* Which pipes of which runners the loop waits for; see
 * supervisor/runner/io/io.h.
 */
#include "supervisor_fixture.h"

#include <fcntl.h>
#include <unistd.h>

#include "../../mod_agent/supervisor/process/process.h"
#include "../../mod_agent/supervisor/runner/protocol/protocol.h"

/* More than a pipe holds. */
#define LONG_INPUT ((apr_size_t)2 * 1024 * 1024)

typedef struct pipes_t {
    fixture_t *fixture;
    agent_poll_t set;
    agent_runner_table_t *table;
    agent_runner_t *runner;
    /* The runner's ends. */
    int in;
    int out;
    int log;
} pipes_t;

static void open_pipe(int *read_end, int *write_end)
{
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    *read_end = ends[0];
    *write_end = ends[1];
}

static void ignore_log(void *baton, agent_log_level_t level, const char *id,
                       apr_status_t rv, const char *text)
{
}

/* The first runner of the fixture has pipes, and its first iteration is over.
 */
static pipes_t *make_pipes(apr_pool_t *pool)
{
    static const agent_supervisor_config_t config = {.log.write = ignore_log};
    pipes_t *p = apr_pcalloc(pool, sizeof(*p));

    p->fixture = make_fixture(pool);
    p->fixture->io->context->config = &config;
    p->table = p->fixture->io->runners;
    p->runner = p->fixture->runner;
    open_pipe(&p->in, &p->runner->in.fd);
    open_pipe(&p->runner->out.fd, &p->out);
    open_pipe(&p->runner->log_out.fd, &p->log);
    agent_buffer_init(&p->runner->output, pool);
    agent_buffer_init(&p->runner->log.text, pool);
    p->runner->state = AGENT_RUNNER_READY;
    p->table->spawner.fd = -1;
    agent_poll_init(&p->set, p->fixture->io->context);
    assert_true(agent_poll_open(&p->set));
    p->table->poll = &p->set;
    agent_runner_touch(p->runner);
    agent_runner_touch(p->fixture->other->group->runner);
    agent_runner_io_poll(p->fixture->io);
    return p;
}

static void drop_pipes(pipes_t *p)
{
    agent_poll_close_watch(&p->runner->in);
    agent_poll_close_watch(&p->runner->out);
    agent_poll_close_watch(&p->runner->log_out);
    agent_poll_close(&p->set);
    close(p->in);
    close(p->out);
    close(p->log);
}

static bool has_pending(const pipes_t *p)
{
    return !APR_RING_EMPTY(&p->table->pending, agent_runner_t, pending_link);
}

/* Reads what the runner was given; returns how many bytes. */
static apr_size_t read_all(const pipes_t *p)
{
    char bytes[65536];
    apr_size_t sum = 0;
    ssize_t got;

    while ((got = read(p->in, bytes, sizeof(bytes))) > 0) {
        sum += (apr_size_t)got;
    }
    return sum;
}

static void runners_that_wait_are_not_looked_at(void **state)
{
    pipes_t *p = make_pipes(*state);

    assert_false(has_pending(p));
    assert_int_equal(p->runner->out.events, EPOLLIN);
    assert_int_equal(p->runner->log_out.events, EPOLLIN);
    assert_int_equal(p->runner->in.events, 0);
    drop_pipes(p);
}

static void input_is_written_without_waiting(void **state)
{
    pipes_t *p = make_pipes(*state);

    agent_protocol_ping(agent_runner_input(p->runner), 1);
    assert_true(has_pending(p));
    assert_true(agent_runner_io_poll(p->fixture->io));
    assert_int_equal(read_all(p), p->runner->written);
    assert_true(p->runner->written > 0);
    assert_false(has_pending(p));
    assert_false(agent_runner_io_poll(p->fixture->io));
    drop_pipes(p);
}

static void input_that_the_pipe_does_not_take_is_written_later(void **state)
{
    pipes_t *p = make_pipes(*state);
    apr_size_t sum = 0;

    agent_buffer_append(agent_runner_input(p->runner),
                        apr_pcalloc(*state, LONG_INPUT), LONG_INPUT);
    assert_true(agent_runner_io_poll(p->fixture->io));
    assert_true(has_pending(p));
    /* The full pipe is waited for, and not tried again. */
    assert_int_equal(p->runner->in.events, EPOLLOUT);
    assert_false(agent_runner_io_poll(p->fixture->io));
    while (p->runner->in.events != 0) {
        sum += read_all(p);
        agent_poll_wait(&p->set, 0);
        agent_runner_io_poll(p->fixture->io);
    }
    assert_int_equal(sum + read_all(p), LONG_INPUT);
    assert_int_equal(p->runner->written, LONG_INPUT);
    assert_false(has_pending(p));
    drop_pipes(p);
}

static void a_runner_that_closed_its_input_is_written_nothing(void **state)
{
    pipes_t *p = make_pipes(*state);

    agent_process_reset_signals();
    close(p->in);
    agent_protocol_ping(agent_runner_input(p->runner), 1);
    assert_false(agent_runner_io_poll(p->fixture->io));
    assert_int_equal(p->runner->in.fd, -1);
    assert_false(agent_runner_io_poll(p->fixture->io));
    p->in = -1;
    drop_pipes(p);
}

/* It would keep the loop awake: what it sent stays in the pipe. */
static void a_killed_runner_is_not_waited_for(void **state)
{
    pipes_t *p = make_pipes(*state);

    agent_protocol_ping(agent_runner_input(p->runner), 1);
    agent_runner_kill(p->table, p->runner, AGENT_LOSS_COUNTED, "a test");
    agent_runner_io_poll(p->fixture->io);
    assert_int_equal(p->runner->in.events, 0);
    assert_int_equal(p->runner->out.events, 0);
    assert_int_equal(p->runner->log_out.events, EPOLLIN);
    assert_int_equal(read_all(p), 0);
    assert_false(has_pending(p));
    drop_pipes(p);
}

static void no_runner_is_read_while_too_much_is_not_committed(void **state)
{
    pipes_t *p = make_pipes(*state);
    agent_batch_queue_t *batches = &p->fixture->runs->batches;

    batches->backlogs.sums[AGENT_BACKLOG_SHARED] = AGENT_BATCH_MAX_SHARED;
    agent_runner_io_poll(p->fixture->io);
    assert_true(p->table->is_full);
    assert_int_equal(p->runner->out.events, 0);
    assert_int_equal(p->runner->log_out.events, EPOLLIN);
    assert_false(has_pending(p));
    batches->backlogs.sums[AGENT_BACKLOG_SHARED] = 0;
    agent_runner_io_poll(p->fixture->io);
    assert_false(p->table->is_full);
    assert_int_equal(p->runner->out.events, EPOLLIN);
    drop_pipes(p);
}

static void a_held_runner_is_looked_at_until_its_line_has_room(void **state)
{
    pipes_t *p = make_pipes(*state);

    p->runner->is_held = true;
    p->runner->held_key = p->fixture->leases[0]->key;
    p->fixture->leases[0]->credit.unsaved = AGENT_BATCH_MAX_RUN;
    agent_runner_touch(p->runner);
    agent_runner_io_poll(p->fixture->io);
    assert_true(has_pending(p));
    assert_int_equal(p->runner->out.events, 0);
    agent_runner_io_resume(p->fixture->io);
    assert_true(p->runner->is_held);
    p->fixture->leases[0]->credit.unsaved = 0;
    agent_runner_io_resume(p->fixture->io);
    assert_false(p->runner->is_held);
    agent_runner_io_poll(p->fixture->io);
    assert_false(has_pending(p));
    assert_int_equal(p->runner->out.events, EPOLLIN);
    drop_pipes(p);
}

static void a_dead_runner_is_freed_whatever_was_looked_at_before(void **state)
{
    pipes_t *p = make_pipes(*state);
    int count = p->table->count;

    apr_pool_create(&p->runner->pool, *state);
    agent_runner_set_dead(p->table, p->runner);
    agent_runner_io_poll(p->fixture->io);
    agent_runner_free_dead(p->table);
    assert_int_equal(p->table->count, count - 1);
    assert_false(has_pending(p));
    /* Its memory is not that of its pool here. */
    assert_int_equal(p->runner->out.fd, -1);
    drop_pipes(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(runners_that_wait_are_not_looked_at),
        CHECK_TEST(input_is_written_without_waiting),
        CHECK_TEST(input_that_the_pipe_does_not_take_is_written_later),
        CHECK_TEST(a_runner_that_closed_its_input_is_written_nothing),
        CHECK_TEST(a_killed_runner_is_not_waited_for),
        CHECK_TEST(no_runner_is_read_while_too_much_is_not_committed),
        CHECK_TEST(a_held_runner_is_looked_at_until_its_line_has_room),
        CHECK_TEST(a_dead_runner_is_freed_whatever_was_looked_at_before),
    };

    return CHECK_RUN(tests);
}
