/* SPDX-License-Identifier: Apache-2.0 */
/* Two pools of a worker, their claims and releases, without processes. */
#ifndef SUPERVISOR_POOLS_H
#define SUPERVISOR_POOLS_H

#include "check.h"

#include <apr_strings.h>

#include "../../mod_agent/db/connection.h"
#include "../../mod_agent/supervisor/base/order.h"
#include "../../mod_agent/supervisor/base/supervisor_config.h"
#include "../../mod_agent/supervisor/runner/pool/slots.h"
#include "../../mod_agent/supervisor/statement/claim.h"
#include "../../mod_agent/supervisor/statement/release_runs.h"

#define ONE   "00000000-0000-0000-0000-000000000001"
#define OTHER "00000000-0000-0000-0000-000000000002"
#define NOW   apr_time_from_sec(1000)
#define SLOTS 2

typedef struct fixture_t {
    agent_context_t context;
    agent_poll_t poll;
    agent_schedule_t schedule;
    /* Two pools of a runner each; the runner of the second is full. */
    agent_pool_config_t configs[2];
    agent_supervisor_config_t config;
    agent_runner_table_t runners;
    agent_graph_set_t *set;
    agent_runner_t runner[2];
    agent_runs_t runs;
    agent_notify_t notify;
    agent_worker_t worker;
    agent_database_t control;
    agent_database_t bulk;
    agent_database_t output;
    agent_claim_t claim;
    agent_release_runs_t release;
} fixture_t;

static const char *const names[] = {"agent"};

static inline void add_runner(fixture_t *f, int number, int active)
{
    agent_runner_t *runner = &f->runner[number];
    agent_graph_table_t *graphs = &f->runners.pools[number].graphs;
    bool *has = apr_pcalloc(f->context.pool, sizeof(*has));

    *has = true;
    graphs->set_count = 1;
    graphs->sets[0] = (agent_graph_set_t){.has = has,
                                          .count = 1,
                                          .users = 1,
                                          .full_scan_at = NOW
                                              + AGENT_CLAIM_INTERVAL};
    runner->runner_pool = &f->runners.pools[number];
    runner->state = AGENT_RUNNER_READY;
    runner->slots = SLOTS;
    runner->set = graphs->sets;
    runner->group.active = active;
    agent_runner_link(&f->runners, runner);
}

static inline void ignore_log(void *baton, agent_log_level_t level,
                              const char *id, apr_status_t rv, const char *text)
{
}

/* A registered worker whose next claim is that of the poll, with one ready
 * runner that executes `active` runs, and one of another pool that is full. */
static inline fixture_t *make_fixture(apr_pool_t *pool, int active)
{
    fixture_t *f = apr_pcalloc(pool, sizeof(*f));

    for (int i = 0; i < 2; i++) {
        f->configs[i] = (agent_pool_config_t){.deployment = "default",
                                              .graph_ids = names,
                                              .graph_count = 1,
                                              .graphs = "{}",
                                              .runners = 1,
                                              .slots = SLOTS};
    }
    f->config = (agent_supervisor_config_t){
        .pools = f->configs, .pool_count = 2, .log.write = ignore_log};
    f->context.pool = pool;
    f->context.now = NOW;
    f->context.config = &f->config;
    f->schedule.context = &f->context;
    f->schedule.claim_at = f->schedule.claim_quarantined_at = AGENT_CLOCK_NEVER;
    agent_poll_init(&f->poll, &f->context);
    agent_runner_init(&f->runners, &f->context, &f->poll);
    add_runner(f, 0, active);
    add_runner(f, 1, SLOTS);
    f->set = f->runner[0].set;
    f->runs.context = &f->context;
    agent_lease_init(&f->runs.leases, &f->context);
    agent_batch_init(&f->runs.batches, &f->context);
    agent_release_init(&f->runs.releases, &f->context);
    f->worker = (agent_worker_t){.context = &f->context,
                                 .control = &f->control,
                                 .bulk = &f->bulk,
                                 .output = &f->output,
                                 .state = AGENT_WORKER_LIVE};
    f->claim = (agent_claim_t){.context = &f->context,
                               .worker = &f->worker,
                               .runners = &f->runners,
                               .runs = &f->runs,
                               .schedule = &f->schedule};
    agent_claim_init(&f->claim);
    f->release = (agent_release_runs_t){.worker = &f->worker,
                                        .runs = &f->runs,
                                        .notify = &f->notify,
                                        .schedule = &f->schedule};
    return f;
}

/* Both pools have a free slot, nothing is due before the poll. */
static inline fixture_t *make_idle_fixture(apr_pool_t *pool)
{
    fixture_t *f = make_fixture(pool, SLOTS - 1);

    f->runner[1].group.active = 0;
    f->schedule.claim_at = NOW + AGENT_CLAIM_INTERVAL;
    apr_cpystrn(f->runners.pools[0].graphs.deployment_id, ONE, AGENT_UUID_SIZE);
    apr_cpystrn(f->runners.pools[1].graphs.deployment_id, OTHER,
                AGENT_UUID_SIZE);
    return f;
}

/* The result of a release arrives: no run needs to be notified. */
static inline void receive_release(fixture_t *f)
{
    /* libpq takes NULL for a result without rows. */
    const void *no_rows = NULL;

    agent_release_runs_operation.receive(&f->release,
                                         (const agent_db_result_t *)&no_rows);
}

#endif
