/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the parts of the supervisor and connects them; see instance.h. */
#include "instance.h"

#include <unistd.h>

#include <apr_allocator.h>

#include "statement/account_sweeps.h"
#include "statement/expire.h"
#include "statement/save_failure.h"

/* Freed memory that is kept for later; the rest is returned to the system. */
#define KEPT_BYTES ((apr_size_t)1024 * 1024)

static void set_default(apr_interval_time_t *value, apr_interval_time_t usual)
{
    if (*value <= 0) {
        *value = usual;
    }
}

static void set_timing(agent_supervisor_timing_t *timing,
                       apr_interval_time_t lease)
{
    set_default(&timing->ping_interval, apr_time_from_sec(10));
    set_default(&timing->ping_timeout, apr_time_from_sec(15));
    set_default(&timing->ready_timeout, apr_time_from_sec(30));
    set_default(&timing->import_pause, apr_time_from_sec(600));
    set_default(&timing->cancel_grace, apr_time_from_sec(10));
    set_default(&timing->drain_grace, apr_time_from_sec(60));
    set_default(&timing->quarantine, apr_time_from_sec(10));
    set_default(&timing->renew, lease / 4);
    set_default(&timing->stop, lease * 13 / 20);
    set_default(&timing->kill, lease);
    set_default(&timing->statement, lease / 4);
    set_default(&timing->patience, apr_time_from_sec(300));
    set_default(&timing->credit, apr_time_from_sec(10));
}

static agent_context_t *make_context(const agent_supervisor_config_t *config)
{
    agent_context_t *context;
    apr_allocator_t *allocator;
    apr_pool_t *pool;

    /* A separate allocator: nothing is shared with the parent's pools. */
    apr_allocator_create(&allocator);
    apr_allocator_max_free_set(allocator, KEPT_BYTES);
    apr_pool_create_ex(&pool, NULL, NULL, allocator);
    apr_allocator_owner_set(allocator, pool);
    context = apr_pcalloc(pool, sizeof(*context));
    context->pool = pool;
    context->config = config;
    context->now = agent_clock_now();
    context->timing = config->timing;
    set_timing(&context->timing, apr_time_from_sec(config->lease_sec));
    return context;
}

static void init_tables(agent_supervisor_t *sv)
{
    agent_context_t *context = sv->context;
    agent_runs_t *runs = &sv->runs;

    sv->schedule.context = context;
    agent_poll_init(&sv->poll, context);
    agent_runner_init(&sv->runners, context, &sv->poll);
    runs->context = context;
    agent_lease_init(&runs->leases, context);
    agent_batch_init(&runs->batches, context);
    agent_credit_init(&runs->credits, context, &runs->batches, &sv->runners);
    agent_release_init(&runs->releases, context);
    agent_runner_request_init(&runs->requests, &runs->batches.backlogs,
                              context->pool);
    agent_delivery_init(&sv->deliveries, context, &sv->poll);
    sv->io = (agent_runner_io_t){
        .context = context, .runners = &sv->runners, .runs = runs};
}

/* The last attempts of statements may have crashed the database. */
static void count_crashes(agent_supervisor_t *sv)
{
    agent_save_failure_on_connected(&sv->save);
    agent_start_on_connected(&sv->starts);
    agent_read_parts_on_connected(&sv->read_parts);
    agent_release_runs_on_connected(&sv->release);
    agent_worker_count_crash(&sv->worker);
}

static void on_control_connected(void *part, bool is_first,
                                 const agent_session_info_t *info)
{
    agent_supervisor_t *sv = part;

    agent_worker_on_connected(&sv->worker, is_first, info);
    count_crashes(sv);
}

static void on_bulk_connected(void *part, bool is_first,
                              const agent_session_info_t *info)
{
    agent_supervisor_t *sv = part;

    agent_worker_on_bulk_connected(&sv->worker, is_first);
    count_crashes(sv);
}

static void on_output_connected(void *part, bool is_first,
                                const agent_session_info_t *info)
{
    agent_supervisor_t *sv = part;

    count_crashes(sv);
}

/*
 * A statement on the control connection may take a quarter of the lease: a
 * renewal is due after a quarter, may wait for one statement, and must succeed
 * before 13/20 of the lease, when runners are stopped. On the bulk connection
 * it may take half of the lease; on the output connection each statement has
 * its own limit (statement/save.c).
 */
static void init_databases(agent_supervisor_t *sv)
{
    agent_context_t *context = sv->context;
    apr_interval_time_t limit = context->timing.statement;
    apr_interval_time_t longest = agent_context_longest_statement(context);
    apr_interval_time_t margin = apr_time_from_sec(context->config->lease_sec)
        / 10;
    agent_database_settings_t control = {.name = "control",
                                         .others = sv->connections,
                                         .statement_limit = limit,
                                         .lock_limit = limit / 2,
                                         .timeout = limit + margin,
                                         .on_connected = on_control_connected,
                                         .part = sv};
    agent_database_settings_t bulk = {.name = "bulk",
                                      .others = sv->connections,
                                      .statement_limit = longest,
                                      .timeout = longest + margin,
                                      .on_connected = on_bulk_connected,
                                      .part = sv};
    agent_database_settings_t output = {.name = "output",
                                        .others = sv->connections,
                                        .statement_limit = longest,
                                        .timeout = longest + margin,
                                        .on_connected = on_output_connected,
                                        .part = sv};

    sv->connections[0] = &sv->control;
    sv->connections[1] = &sv->bulk;
    sv->connections[2] = &sv->output;
    agent_database_init(&sv->control, context, &sv->poll, &control);
    agent_database_init(&sv->bulk, context, &sv->poll, &bulk);
    agent_database_init(&sv->output, context, &sv->poll, &output);
}

/* The statements about this worker and its runs. */
static void init_statements(agent_supervisor_t *sv)
{
    agent_context_t *context = sv->context;

    agent_notify_init(&sv->notify, context);
    sv->worker = (agent_worker_t){.context = context,
                                  .runners = &sv->runners,
                                  .runs = &sv->runs,
                                  .notify = &sv->notify,
                                  .schedule = &sv->schedule,
                                  .control = &sv->control,
                                  .bulk = &sv->bulk,
                                  .output = &sv->output};
    agent_worker_init(&sv->worker);
    sv->claim = (agent_claim_t){.context = context,
                                .worker = &sv->worker,
                                .runners = &sv->runners,
                                .runs = &sv->runs,
                                .schedule = &sv->schedule};
    agent_claim_init(&sv->claim);
    sv->starts = (agent_start_queue_t){
        .worker = &sv->worker, .runners = &sv->runners, .runs = &sv->runs};
    agent_start_init(&sv->starts);
    sv->read_parts = (agent_read_parts_t){
        .worker = &sv->worker, .runners = &sv->runners, .runs = &sv->runs};
    sv->check = (agent_lease_check_t){&sv->worker, &sv->runners, &sv->runs,
                                      &sv->schedule};
    sv->save = (agent_save_t){.worker = &sv->worker,
                              .runners = &sv->runners,
                              .runs = &sv->runs,
                              .notify = &sv->notify,
                              .schedule = &sv->schedule,
                              .control = &sv->control,
                              .output = &sv->output,
                              .bulk = &sv->bulk};
    sv->release = (agent_release_runs_t){&sv->worker, &sv->runs, &sv->notify,
                                         &sv->schedule};
}

/* Statements about other things than runs, and the end of the supervisor. */
static void init_rest(agent_supervisor_t *sv)
{
    agent_context_t *context = sv->context;

    sv->save_graphs = (agent_save_graphs_t){.worker = &sv->worker,
                                            .runners = &sv->runners};
    sv->failing = (agent_failing_t){.worker = &sv->worker,
                                    .runners = &sv->runners};
    sv->limits = (agent_set_limits_t){.database = &sv->control};
    sv->webhook = (agent_webhook_t){.context = context,
                                    .deliveries = &sv->deliveries,
                                    .worker = &sv->worker,
                                    .schedule = &sv->schedule};
    sv->shutdown = (agent_shutdown_t){.context = context,
                                      .io = &sv->io,
                                      .runs = &sv->runs,
                                      .worker = &sv->worker,
                                      .webhooks = &sv->deliveries,
                                      .notify = &sv->notify,
                                      .control = &sv->control,
                                      .bulk = &sv->bulk,
                                      .output = &sv->output};
}

/* On the control connection each statement is bounded in rows and bytes, so
 * that a renewal waits for none of them long. Output that costs much, or is
 * long, has a connection of its own: other runs wait for the statements of the
 * bulk connection. */
static void add_operations(agent_supervisor_t *sv)
{
    agent_database_t *control = &sv->control;
    agent_database_t *bulk = &sv->bulk;

    agent_database_add(control, &agent_set_limits_operation, &sv->limits);
    agent_database_add(control, &agent_renew_operation, &sv->worker);
    agent_database_add(control, &agent_batch_operation, &sv->save);
    agent_database_add(control, &agent_check_operation, &sv->check);
    agent_database_add(control, &agent_claim_operation, &sv->claim);
    agent_database_add(control, &agent_notify_operation, &sv->notify);
    agent_database_add(control, &agent_list_operation, &sv->worker);
    agent_database_add(control, &agent_register_operation, &sv->worker);

    agent_database_add(bulk, &agent_release_runs_operation, &sv->release);
    agent_database_add(bulk, &agent_start_operation, &sv->starts);
    agent_database_add(bulk, &agent_read_parts_operation, &sv->read_parts);
    agent_database_add(bulk, &agent_mark_dead_operation, &sv->worker);
    agent_database_add(bulk, &agent_sweep_workers_operation, &sv->worker);
    agent_database_add(bulk, &agent_save_graphs_operation, &sv->save_graphs);
    agent_database_add(bulk, &agent_failing_operation, &sv->failing);
    agent_expire_add(bulk, &sv->worker, &sv->notify);
    agent_account_sweeps_add(bulk, &sv->worker, &sv->notify);
    agent_database_add(bulk, &agent_webhook_claim_operation, &sv->webhook);
    agent_database_add(bulk, &agent_webhook_save_operation, &sv->webhook);
    agent_database_add(bulk, &agent_webhook_sweep_operation, &sv->webhook);
    agent_database_add(bulk, &agent_bulk_batch_operation, &sv->save);

    agent_database_add(&sv->output, &agent_dedicated_batch_operation,
                       &sv->save);
}

agent_supervisor_t *agent_instance_make(const agent_supervisor_config_t *config)
{
    agent_context_t *context = make_context(config);
    agent_supervisor_t *sv = apr_pcalloc(context->pool, sizeof(*sv));

    sv->context = context;
    sv->parent_pid = getppid();
    init_tables(sv);
    init_databases(sv);
    init_statements(sv);
    init_rest(sv);
    add_operations(sv);
    return sv;
}
