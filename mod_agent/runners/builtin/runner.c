/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop, single-threaded: lines from the supervisor, runs that are
 * due, transfers. While the supervisor does not read, no input is read and no
 * output is produced.
 */
#include "runner.h"

#include <malloc.h>
#include <string.h>

#include "command.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/scan.h"
#include "runner_state.h"
#include "runners/builtin/base/log.h"
#include "runners/builtin/run/admission.h"
#include "runners/builtin/run/load_admission.h"
#include "runners/builtin/run/part.h"
#include "runners/builtin/run/run.h"

/* The longest wait for the supervisor, a transfer or a run. */
#define WAIT_LONGEST_MS 60000
/* At most one line of this size or larger is executed in an iteration. */
#define LINE_LARGE ((size_t)256 * 1024)
/* Freed memory is returned to the system after a run of this weight. */
#define TRIM_WEIGHT ((size_t)16 * 1024 * 1024)
/* Pending text may take 1/8 of the runs' memory. */
#define PENDING_SHARE 8
/* States of threads without a run may take 1/2 of it. */
#define WARM_SHARE 2

static void stop_runner(runner_t *runner, int exit_code)
{
    runner->is_over = true;
    runner->exit_code = exit_code;
}

/* The allocator is trimmed, since memory that it keeps counts towards the
 * process's limit. */
static void trim(size_t freed)
{
    if (freed > TRIM_WEIGHT) {
        malloc_trim(0);
    }
}

/* The state of the thread is kept for its next run. */
static void remove_run(runner_t *runner, runner_run_t *run)
{
    size_t weight = runner_runs_weigh(run);
    size_t kept = runner->warm->bytes;

    runner_warm_keep(runner->warm, run, agent_clock_now());
    kept = runner->warm->bytes > kept ? runner->warm->bytes - kept : 0;
    APR_RING_REMOVE(run, link);
    runner->used--;
    runner->has_room |= runner_pending_end_run(&runner->pending,
                                               &run->pending_size);
    apr_pool_destroy(run->pool);
    trim(weight > kept ? weight - kept : 0);
}

/* Runs and warm states together take at most the memory of runs. */
static void measure_memory(runner_t *runner)
{
    size_t max = runner->queue.memory_max;
    size_t used = runner_runs_weigh_all(&runner->runs);
    size_t left = used < max ? max - used : 0;

    runner->has_room |= runner_pending_set_memory(&runner->pending, used, max);
    trim(runner_warm_trim(runner->warm,
                          left < max / WARM_SHARE ? left : max / WARM_SHARE,
                          agent_clock_now()));
}

/* The line has passed the scan of runner_weight_estimate(). */
static void read_line(runner_t *runner, const char *text, size_t length,
                      runner_weight_t weight)
{
    agent_error_t *err = NULL;
    json_object *line;
    apr_pool_t *pool;

    apr_pool_create(&pool, runner->pool);
    if (runner_part_read_line(&line, text, length, &err, pool) != APR_SUCCESS) {
        runner_command_refuse(runner, err->detail);
        apr_pool_destroy(pool);
        return;
    }
    runner->weight = weight;
    runner_command_execute(runner, line, pool);
    apr_pool_clear(runner->scratch);
}

/* Only starts wait for memory. */
static void take_line(runner_t *runner, const char *text, size_t length)
{
    agent_error_t *err = NULL;
    runner_weight_t weight;

    if (runner_weight_estimate(&weight, text, length, &err, runner->scratch)
        != APR_SUCCESS) {
        runner_command_refuse(runner, err->detail);
    }
    else if (runner_queue_admits(&runner->queue,
                                 runner_runs_weigh_all(&runner->runs),
                                 weight)) {
        read_line(runner, text, length, weight);
    }
    else if (runner->used + runner->queue.count == runner->slots) {
        runner_command_refuse(runner, "start when all slots are in use");
    }
    else {
        runner_queue_add(&runner->queue, text, length, weight);
    }
}

/* Whether no input may be read: there is no room for the output that it causes,
 * or for another start. The supervisor sends at most half of the starts that
 * the queue holds, so that `go` is always read. */
static bool is_input_blocked(const runner_t *runner)
{
    return runner_wire_is_full(&runner->wire)
        || runner_queue_is_full(&runner->queue);
}

static void take_lines(runner_t *runner)
{
    size_t length = 0;
    char *line;

    while (!runner->is_over && !is_input_blocked(runner) && length < LINE_LARGE
           && (line = runner_wire_next_line(&runner->wire, &length)) != NULL) {
        take_line(runner, line, length);
    }
}

static void start_queued(runner_t *runner, runner_queue_entry_t *entry)
{
    runner_queue_remove(&runner->queue, entry);
    runner->was_queued = true;
    read_line(runner, entry->text, entry->length, entry->weight);
    runner->was_queued = false;
    apr_pool_destroy(entry->pool);
}

/* Starts at most one queued run in an iteration, since its line is large. */
static void admit_next(runner_t *runner)
{
    runner_queue_entry_t *entry = runner_queue_find(
        &runner->queue, runner_runs_weigh_all(&runner->runs));

    if (entry != NULL) {
        start_queued(runner, entry);
    }
}

static void read_lines(runner_t *runner)
{
    apr_status_t rv;

    take_lines(runner);
    if (runner->is_over || runner_wire_has_lines(&runner->wire)
        || is_input_blocked(runner)) {
        return;
    }
    rv = runner_wire_read(&runner->wire);
    if (rv == APR_ENOSPC) {
        runner_command_refuse(runner, "a line of more than 8 MiB");
    }
    else if (rv != APR_SUCCESS) {
        stop_runner(runner, 0);
    }
    else {
        take_lines(runner);
    }
}

/* Executes a run until it must wait; false when it is over and all its lines
 * are on the wire. */
static bool advance_run(runner_t *runner, runner_run_t *run, apr_time_t now)
{
    while (run->phase != RUNNER_PHASE_OVER && run->wake_at <= now
           && !runner_wire_is_full(&runner->wire)
           && runner_admission_begin(run)) {
        runner_run_advance(run);
    }
    runner_output_request(&run->output);
    return run->phase != RUNNER_PHASE_OVER
        || runner_output_has_backlog(&run->output);
}

/* Executes all runs that are due, but only one heavy run, so that lines are
 * read between two of them. Returns the time at which the next run is due. */
static apr_time_t advance_runs(runner_t *runner)
{
    apr_time_t now = agent_clock_now();
    apr_time_t first = AGENT_CLOCK_NEVER;
    runner_run_t *heavy = runner_runs_choose_heavy(&runner->runs, now);
    runner_run_t *run = APR_RING_FIRST(&runner->runs);

    for (int left = runner->used; left > 0; left--) {
        runner_run_t *next = APR_RING_NEXT(run, link);
        bool may_continue = run == heavy || !runner_runs_is_heavy(run, now);
        bool was_blocked = runner_admission_is_blocked(run);

        if (may_continue && !advance_run(runner, run, now)) {
            remove_run(runner, run);
        }
        else if (!runner_admission_is_blocked(run)) {
            first = run->wake_at < first ? run->wake_at : first;
        }
        else if (!was_blocked) {
            runner_runs_move_back(&runner->runs, run);
        }
        run = next;
    }
    return first;
}

static int get_timeout_ms(const runner_t *runner, apr_time_t wake_at)
{
    apr_time_t now = agent_clock_now();
    apr_time_t replace_at = runner_pending_wake_at(&runner->pending, now);

    wake_at = replace_at < wake_at ? replace_at : wake_at;
    /* Nothing can be done before the pipe accepts output. */
    if (runner_wire_is_full(&runner->wire)) {
        return WAIT_LONGEST_MS;
    }
    if (wake_at <= now || runner->has_room
        || (runner_wire_has_lines(&runner->wire) && !is_input_blocked(runner))
        || runner_queue_find(&runner->queue,
                             runner_runs_weigh_all(&runner->runs))
            != NULL
        || runner_http_is_ready(runner->http)) {
        return 0;
    }
    if (wake_at - now > apr_time_from_msec(WAIT_LONGEST_MS)) {
        return WAIT_LONGEST_MS;
    }
    /* Rounded up: an early wake-up would find nothing due. */
    return (int)((wake_at - now + 999) / 1000);
}

static void wait_for_work(runner_t *runner, apr_time_t wake_at)
{
    struct curl_waitfd descriptors[2];
    unsigned count = 0;

    memset(descriptors, 0, sizeof(descriptors));
    if (!is_input_blocked(runner)) {
        descriptors[count].fd = runner->wire.in_fd;
        descriptors[count++].events = CURL_WAIT_POLLIN;
    }
    if (runner_wire_unsent(&runner->wire) > 0) {
        descriptors[count].fd = runner->wire.out_fd;
        descriptors[count++].events = CURL_WAIT_POLLOUT;
    }
    runner_http_wait(runner->http, descriptors, count,
                     get_timeout_ms(runner, wake_at));
}

static void iterate(runner_t *runner)
{
    apr_time_t wake_at;

    read_lines(runner);
    runner->has_room = false;
    measure_memory(runner);
    runner_http_perform(runner->http);
    /* Before advance_runs(), so that the run begins in this iteration. */
    admit_next(runner);
    wake_at = advance_runs(runner);
    runner_load_admission_send(&runner->runs, runner->queue.memory_max);
    measure_memory(runner);
    if (runner_wire_flush(&runner->wire) != APR_SUCCESS) {
        stop_runner(runner, 0);
    }
    if (runner->is_draining && runner->used == 0 && runner->queue.count == 0
        && runner_wire_unsent(&runner->wire) == 0) {
        stop_runner(runner, 0);
    }
    if (!runner->is_over) {
        wait_for_work(runner, wake_at);
    }
}

int runner_serve(int in_fd, int out_fd, int slots, apr_pool_t *pool)
{
    runner_t *runner = apr_pcalloc(pool, sizeof(*runner));

    runner->pool = pool;
    runner->slots = slots;
    APR_RING_INIT(&runner->runs, runner_run_t, link);
    runner_queue_init(&runner->queue, pool);
    runner->pending.bytes_max = runner->queue.memory_max / PENDING_SHARE;
    runner->warm = runner_warm_make(pool);
    apr_pool_create(&runner->scratch, pool);
    if (runner_wire_open(&runner->wire, in_fd, out_fd, pool) != APR_SUCCESS) {
        runner_log_write(NULL,
                         "descriptors %d and %d are not open: this "
                         "program is started by the supervisor",
                         in_fd, out_fd);
        return 1;
    }
    runner->http = runner_http_open(slots, pool);
    if (runner->http == NULL) {
        runner_log_write(NULL, "libcurl cannot be initialised");
        return 1;
    }
    while (!runner->is_over) {
        iterate(runner);
    }
    return runner->exit_code;
}
