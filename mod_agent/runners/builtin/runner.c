/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop; see runner.h. Everything happens in one thread: lines from the
 * supervisor, runs whose time has come, transfers. While the supervisor does
 * not read, nothing new is made and nothing new is read.
 */
#include "runner.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdbool.h>
#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "core/json.h"
#include "core/scan.h"
#include "runners/builtin/run/output.h"
#include "runners/builtin/base/log.h"
#include "runners/builtin/run/queue.h"
#include "runners/builtin/run/run.h"
#include "runners/builtin/run/runs.h"
#include "runners/builtin/base/value.h"

/* The loop has nothing to do before the supervisor or a transfer says so. */
#define WAIT_LONGEST_MS 60000
/* Lines from this size on are taken one in a turn: runs go on in between. */
#define LINE_LARGE ((size_t)256 * 1024)
/* Giving memory back takes a while itself. */
#define TRIM_WEIGHT ((size_t)16 * 1024 * 1024)

typedef struct runner_t {
    apr_pool_t *pool;
    /* Of one line. */
    apr_pool_t *scratch;
    runner_wire_t wire;
    runner_http_t *http;
    int slots;
    int used;
    runner_run_ring_t runs;
    /* Starts that wait until others have ended. */
    runner_queue_t queue;
    /* The line that is being taken has waited: it came before a drain. */
    bool has_waited;
    /* Of the line that is being taken. */
    size_t weight;
    size_t line_size;
    /* name -> runner_graph_t; NULL before hello. */
    apr_hash_t *graphs;
    bool is_draining;
    bool is_over;
    int exit_code;
} runner_t;

static void stop_runner(runner_t *runner, int exit_code)
{
    runner->is_over = true;
    runner->exit_code = exit_code;
}

static void refuse_line(runner_t *runner, const char *reason)
{
    runner_log_write(NULL, "the supervisor broke the protocol: %s", reason);
    stop_runner(runner, 2);
}

/* What the allocator keeps of a large run would count as taken. */
static void remove_run(runner_t *runner, runner_run_t *run)
{
    size_t weight = run->weight;

    APR_RING_REMOVE(run, link);
    runner->used--;
    apr_pool_destroy(run->pool);
    if (weight > TRIM_WEIGHT) {
        malloc_trim(0);
    }
}

static void read_graphs(runner_t *runner, json_object *given)
{
    runner->graphs = apr_hash_make(runner->pool);
    json_object_object_foreach(given, name, value)
    {
        runner_graph_t *graph;
        runner_problem_t *problem = NULL;

        if (runner_graph_read(&graph, name, value, &problem, runner->pool)
            == APR_SUCCESS) {
            apr_hash_set(runner->graphs, graph->name, APR_HASH_KEY_STRING,
                         graph);
        }
        else {
            runner_log_write(NULL, "graph %s cannot be served: %s", name,
                                 problem->message);
        }
    }
}

static void send_ready(runner_t *runner)
{
    json_object *graphs = agent_json_own(json_object_new_object(),
                                         runner->scratch);
    apr_hash_index_t *index = apr_hash_first(runner->scratch, runner->graphs);

    for (; index != NULL; index = apr_hash_next(index)) {
        runner_graph_t *graph = apr_hash_this_val(index);

        runner_value_add(graphs, graph->name, runner_graph_describe(graph));
    }
    runner_wire_begin(&runner->wire, "{\"type\":\"ready\",\"graphs\":");
    runner_wire_add_json(&runner->wire, graphs);
    runner_wire_add(&runner->wire, ",\"slots\":%d}", runner->slots);
    runner_wire_end(&runner->wire);
}

static void take_hello(runner_t *runner, json_object *line)
{
    json_object *graphs = agent_json_get(line, "graphs");

    if (runner->graphs != NULL) {
        refuse_line(runner, "a second hello");
        return;
    }
    if (agent_json_integer(line, "protocol", 0) != RUNNER_PROTOCOL) {
        refuse_line(runner, "hello with a protocol other than 1");
        return;
    }
    if (!json_object_is_type(graphs, json_type_object)) {
        refuse_line(runner, "hello without graphs");
        return;
    }
    read_graphs(runner, graphs);
    send_ready(runner);
}

/* line belongs to pool, which becomes the run's. */
static void take_start(runner_t *runner, json_object *line, apr_pool_t *pool)
{
    const char *name = agent_json_string(line, "graph_id", "");
    const char *reason = NULL;
    runner_run_t *run;

    if (runner_run_create(
            &run, line, &runner->wire, runner->http,
            apr_hash_get(runner->graphs, name, APR_HASH_KEY_STRING), &reason,
            pool)
        != APR_SUCCESS) {
        refuse_line(runner, reason);
    }
    else if (runner->is_draining && !runner->has_waited) {
        refuse_line(runner, "start after drain");
    }
    else if (runner->used == runner->slots) {
        refuse_line(runner, "start when all slots are in use");
    }
    else if (runner_runs_find(&runner->runs, run->run_id) != NULL) {
        refuse_line(runner, "start of a run that is already running");
    }
    else {
        run->weight = runner->weight;
        run->weighed_size = runner->line_size;
        APR_RING_INSERT_TAIL(&runner->runs, run, runner_run_t, link);
        runner->used++;
        return;
    }
    apr_pool_destroy(pool);
}

/* Ends a run that waits, without its tree: that may be larger than the memory
 * that it waits for. It has not begun, so there is nothing to keep. */
static void drop_waiting(runner_t *runner, runner_queue_entry_t *entry)
{
    runner_wire_begin(&runner->wire,
                      "{\"type\":\"end\",\"run_id\":\"%s\",\"epoch\":%" PRId64
                      ",\"status\":\"interrupted\",\"error\":null}",
                      entry->run_id, entry->epoch);
    runner_wire_end(&runner->wire);
    runner_queue_remove(&runner->queue, entry);
    apr_pool_destroy(entry->pool);
}

/* A run that has ended may still be on its way to the supervisor: to cancel it
 * is no breach. */
static void take_cancel(runner_t *runner, json_object *line)
{
    const char *run_id = agent_json_string(line, "run_id", "");
    int64_t epoch = agent_json_integer(line, "epoch", -1);
    runner_queue_entry_t *entry = runner_queue_find_run(&runner->queue, run_id,
                                                        epoch);
    runner_run_t *run = runner_runs_find(&runner->runs, run_id);

    if (run != NULL && run->epoch == epoch) {
        runner_run_cancel(run);
    }
    else if (entry != NULL) {
        drop_waiting(runner, entry);
    }
}

static void take_go(runner_t *runner, json_object *line)
{
    runner_run_t *run = runner_runs_find(&runner->runs,
                                         agent_json_string(line, "run_id", ""));

    if (run != NULL && run->asked > 0
        && run->epoch == agent_json_integer(line, "epoch", -1)) {
        runner_output_go(run);
    }
}

static void take_ping(runner_t *runner, json_object *line)
{
    runner_wire_begin(&runner->wire, "{\"type\":\"pong\",\"id\":");
    runner_wire_add_json(&runner->wire, agent_json_get(line, "id"));
    runner_wire_add(&runner->wire, "}");
    runner_wire_end(&runner->wire);
}

/* line belongs to pool, which only `start` keeps. */
static void take_message(runner_t *runner, json_object *line, apr_pool_t *pool)
{
    const char *type = agent_json_string(line, "type", "");

    if (strcmp(type, "start") == 0 && runner->graphs != NULL) {
        take_start(runner, line, pool);
        return;
    }
    if (strcmp(type, "hello") == 0) {
        take_hello(runner, line);
    }
    else if (strcmp(type, "ping") == 0) {
        take_ping(runner, line);
    }
    else if (runner->graphs == NULL) {
        refuse_line(runner, "a message before hello");
    }
    else if (strcmp(type, "cancel") == 0) {
        take_cancel(runner, line);
    }
    else if (strcmp(type, "go") == 0) {
        take_go(runner, line);
    }
    else if (strcmp(type, "drain") == 0) {
        runner->is_draining = true;
    }
    /* This runner asks nothing, so a reply is an answer to nobody. */
    else if (strcmp(type, "reply") != 0) {
        refuse_line(runner, "a message of an unknown type");
    }
    apr_pool_destroy(pool);
}

static void read_line(runner_t *runner, const char *text, size_t length,
                      size_t weight)
{
    agent_error_t *err = NULL;
    json_object *line;
    apr_pool_t *pool;

    apr_pool_create(&pool, runner->pool);
    if (agent_json_parse(&line, text, length, &err, pool) != APR_SUCCESS) {
        refuse_line(runner, err->detail);
        apr_pool_destroy(pool);
        return;
    }
    runner->weight = weight;
    runner->line_size = length;
    take_message(runner, line, pool);
    apr_pool_clear(runner->scratch);
}

/* Only starts are heavy. What is not JSON is refused when it is read. */
static void take_line(runner_t *runner, const char *text, size_t length)
{
    agent_scan_t scan = {.pool = NULL};
    bool is_json = agent_scan_json(&scan, text, length);

    if (!is_json
        || runner_queue_admits(
            &runner->queue, runner_runs_measure(&runner->runs), scan.weight)) {
        read_line(runner, text, length, scan.weight);
    }
    else if (runner->used + runner->queue.count == runner->slots) {
        refuse_line(runner, "start when all slots are in use");
    }
    else {
        runner_queue_add(&runner->queue, text, length, scan.weight);
    }
}

/* Nothing is read: its answer, or its state, would have no room. The supervisor
 * gives a runner half as much to start as the queue takes, so that `go` never
 * waits behind it. */
static bool is_input_held(const runner_t *runner)
{
    return runner_wire_is_full(&runner->wire)
        || runner_queue_is_full(&runner->queue);
}

static void take_lines(runner_t *runner)
{
    size_t length = 0;
    char *line;

    while (!runner->is_over && !is_input_held(runner) && length < LINE_LARGE
           && (line = runner_wire_line(&runner->wire, &length)) != NULL) {
        take_line(runner, line, length);
    }
}

static void admit(runner_t *runner, runner_queue_entry_t *entry)
{
    runner_queue_remove(&runner->queue, entry);
    runner->has_waited = true;
    read_line(runner, entry->text, entry->length, entry->weight);
    runner->has_waited = false;
    apr_pool_destroy(entry->pool);
}

/* One in a turn, as lines that are large. */
static void admit_next(runner_t *runner)
{
    runner_queue_entry_t *entry = runner_queue_find(
        &runner->queue, runner_runs_measure(&runner->runs));

    if (entry != NULL) {
        admit(runner, entry);
    }
}

/* Whether whole lines may still wait in the buffer. */
static bool has_lines(const runner_t *runner)
{
    return runner->wire.in_searched < runner->wire.in.length;
}

static void read_lines(runner_t *runner)
{
    apr_status_t rv;

    take_lines(runner);
    if (runner->is_over || has_lines(runner) || is_input_held(runner)) {
        return;
    }
    rv = runner_wire_read(&runner->wire);
    if (rv == APR_ENOSPC) {
        refuse_line(runner, "a line of more than 8 MiB");
    }
    else if (rv != APR_SUCCESS) {
        stop_runner(runner, 0);
    }
    else {
        take_lines(runner);
    }
}

/* Lets a run go on until it has to wait; false when it is over and none of its
 * lines is held back. */
static bool advance_run(runner_t *runner, runner_run_t *run, apr_time_t now)
{
    while (run->phase != RUNNER_PHASE_OVER && run->wake_at <= now
           && !runner_wire_is_full(&runner->wire)
           && !runner_output_is_full(run)) {
        runner_run_advance(run);
    }
    runner_output_ask(run);
    return run->phase != RUNNER_PHASE_OVER || runner_output_is_waiting(run);
}

/* Lets all runs go on, but only one of the heavy ones, so that lines are read
 * between two of them. Returns when the next run has to be woken. */
static apr_time_t advance_runs(runner_t *runner)
{
    apr_time_t now = agent_clock_now();
    apr_time_t first = AGENT_CLOCK_NEVER;
    runner_run_t *heavy = runner_runs_choose_heavy(&runner->runs, now);
    runner_run_t *run = APR_RING_FIRST(&runner->runs);

    while (run != APR_RING_SENTINEL(&runner->runs, runner_run_t, link)) {
        runner_run_t *next = APR_RING_NEXT(run, link);
        bool may_go_on = run == heavy || !runner_runs_is_heavy(run, now);

        if (may_go_on && !advance_run(runner, run, now)) {
            remove_run(runner, run);
        }
        else if (!runner_output_is_full(run) && run->wake_at < first) {
            first = run->wake_at;
        }
        run = next;
    }
    return first;
}

static int get_timeout_ms(const runner_t *runner, apr_time_t wake_at)
{
    apr_time_t now = agent_clock_now();

    /* A full wire is woken by the pipe alone. */
    if (runner_wire_is_full(&runner->wire)) {
        return WAIT_LONGEST_MS;
    }
    if (wake_at <= now || (has_lines(runner) && !is_input_held(runner))
        || runner_queue_find(&runner->queue, runner_runs_measure(&runner->runs))
            != NULL
        || runner_http_is_ready(runner->http)) {
        return 0;
    }
    if (wake_at - now > apr_time_from_msec(WAIT_LONGEST_MS)) {
        return WAIT_LONGEST_MS;
    }
    /* Rounded up: waking too early would only mean waking twice. */
    return (int)((wake_at - now + 999) / 1000);
}

static void wait_for_work(runner_t *runner, apr_time_t wake_at)
{
    struct curl_waitfd descriptors[2];
    unsigned count = 0;

    memset(descriptors, 0, sizeof(descriptors));
    if (!is_input_held(runner)) {
        descriptors[count].fd = runner->wire.in_fd;
        descriptors[count++].events = CURL_WAIT_POLLIN;
    }
    if (runner_wire_pending(&runner->wire) > 0) {
        descriptors[count].fd = runner->wire.out_fd;
        descriptors[count++].events = CURL_WAIT_POLLOUT;
    }
    runner_http_wait(runner->http, descriptors, count,
                     get_timeout_ms(runner, wake_at));
}

static void turn(runner_t *runner)
{
    apr_time_t wake_at;

    read_lines(runner);
    runner_http_perform(runner->http);
    wake_at = advance_runs(runner);
    admit_next(runner);
    if (runner_wire_flush(&runner->wire) != APR_SUCCESS) {
        stop_runner(runner, 0);
    }
    if (runner->is_draining && runner->used == 0 && runner->queue.count == 0
        && runner_wire_pending(&runner->wire) == 0) {
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
    apr_pool_create(&runner->scratch, pool);
    if (runner_wire_open(&runner->wire, in_fd, out_fd, pool) != APR_SUCCESS) {
        runner_log_write(NULL,
                             "descriptors %d and %d are not open: this "
                             "program is started by the supervisor",
                             in_fd, out_fd);
        return 1;
    }
    runner->http = runner_http_open(pool);
    if (runner->http == NULL) {
        runner_log_write(NULL, "libcurl cannot be initialised");
        return 1;
    }
    while (!runner->is_over) {
        turn(runner);
    }
    return runner->exit_code;
}
