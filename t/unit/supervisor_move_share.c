/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/*
 * Lines that leave shared batches, and the shares of the room: deployments send
 * many short lines that the database stores slowly, each of another run. See
 * supervisor/lease/batch_move.h and backlog.h.
 */
#include "supervisor_batches.h"

#include "../../mod_agent/core/clock.h"
#include "../../mod_agent/supervisor/lease/fair_queue.h"
#include "../../mod_agent/supervisor/runner/run/credit.h"

#define NOW  apr_time_from_sec(1000)
#define STEP apr_time_from_msec(1)
#define END  (NOW + apr_time_from_sec(30))
#define LINE 64000
/* A dedicated batch with one of them: room is asked for the line alone. */
#define BATCH (LINE + 1 + AGENT_BATCH_ITEM_BYTES + AGENT_BATCH_OWN_BYTES)
/* The database stores 1.2 MB of them in a second. */
#define LINE_TIME   ((apr_interval_time_t)LINE * 10 / 12)
#define DEPLOYMENTS 8

/* A connection: its batch in flight, and when that is saved. */
typedef struct connection_t {
    agent_batch_t *sent;
    apr_time_t until;
} connection_t;

typedef struct flood_t {
    fixture_t *fixture;
    agent_batch_queue_t *queue;
    agent_runner_t *runners[DEPLOYMENTS];
    int deployments;
    /* Of each deployment: runs that may wait, and those that do. */
    int slots;
    int waiting[DEPLOYMENTS];
    int made;
    connection_t shared;
    connection_t dedicated;
    apr_size_t most_dedicated;
    apr_size_t most_shared;
    apr_size_t last_shared; /* at the end */
    int refused;
    int full;
} flood_t;

static const char line[LINE];

/* A new run of the deployment sends its only line if it may. */
static bool send_line(flood_t *f, int deployment)
{
    agent_lease_key_t key = {.epoch = 1};
    agent_runs_t *runs = f->fixture->runs;
    agent_lease_t *lease;
    char text[40];
    bool may_send;

    apr_snprintf(text, sizeof(text), "%036d", f->made++);
    memcpy(key.run_id, text, sizeof(key.run_id));
    lease = agent_lease_add(&runs->leases, &key,
                            &f->runners[deployment]->group);
    apr_snprintf(lease->deployment_id, sizeof(lease->deployment_id), "%d",
                 deployment);
    may_send = !agent_batch_is_full(f->queue)
        && agent_credit_allows(&runs->credits, lease, LINE);
    if (may_send) {
        agent_batch_add(f->queue, lease, AGENT_ITEM_EVENT, line, LINE, -1);
        f->waiting[deployment]++;
    }
    agent_lease_detach(&runs->leases, lease);
    agent_lease_set_state(&runs->leases, lease, AGENT_LEASE_GONE);
    return may_send;
}

static void send_lines(flood_t *f)
{
    for (int i = 0; i < 2 * f->deployments; i++) {
        int deployment = i % f->deployments;

        if (f->waiting[deployment] < f->slots) {
            send_line(f, deployment);
        }
    }
}

/* The lines of the batch that are not discarded. */
static int count_lines(const agent_batch_t *batch)
{
    int lines = 0;

    for (int i = 0; i < batch->items->nelts; i++) {
        lines += !agent_batch_item(batch, i)->run->is_discarded;
    }
    return lines;
}

static void save(flood_t *f, connection_t *connection)
{
    agent_batch_t *batch = connection->sent;
    apr_interval_time_t elapsed = count_lines(batch) * LINE_TIME;

    for (int i = 0; i < batch->items->nelts; i++) {
        const agent_batch_run_t *run = agent_batch_item(batch, i)->run;

        f->waiting[run->deployment_id[0] - '0'] -= !run->is_discarded;
    }
    if (!batch->is_dedicated) {
        agent_batch_size_save(&f->queue->batch_size, batch->cost, elapsed);
        agent_batch_move_mark_slow(f->queue, &f->fixture->runs->leases, batch,
                                   elapsed);
    }
    agent_batch_remove(f->queue, batch);
    connection->sent = NULL;
}

static void step_connection(flood_t *f, connection_t *connection,
                            agent_batch_t *next)
{
    apr_time_t now = f->queue->context->now;

    if (connection->sent != NULL && connection->until <= now) {
        save(f, connection);
    }
    else if (connection->sent == NULL && next != NULL
             && agent_batch_due(next, now) <= now) {
        agent_batch_send_begin(f->queue, next);
        connection->sent = next;
        connection->until = now + count_lines(next) * LINE_TIME;
    }
}

static void flood(flood_t *f)
{
    agent_runs_t *runs = f->fixture->runs;
    const agent_backlog_table_t *backlogs = &f->queue->backlogs;

    while (runs->context->now < END) {
        send_lines(f);
        agent_batch_move_step(f->queue);
        step_connection(f, &f->shared, agent_batch_send_next_shared(f->queue));
        step_connection(f, &f->dedicated,
                        agent_batch_send_next_dedicated(f->queue));
        f->most_dedicated = AGENT_MAX(
            f->most_dedicated,
            agent_backlog_sum(backlogs, AGENT_BACKLOG_DEDICATED));
        f->most_shared = AGENT_MAX(
            f->most_shared, agent_backlog_sum(backlogs, AGENT_BACKLOG_SHARED));
        f->refused += !agent_credit_allows(&runs->credits, f->fixture->other,
                                           100000);
        f->full += agent_batch_is_full(f->queue);
        f->last_shared = agent_backlog_sum(backlogs, AGENT_BACKLOG_SHARED);
        runs->context->now += STEP;
    }
}

static flood_t *make_flood(apr_pool_t *pool, int deployments, int slots)
{
    flood_t *f = apr_pcalloc(pool, sizeof(*f));

    f->fixture = make_fixture(pool);
    f->queue = &f->fixture->runs->batches;
    f->deployments = deployments;
    f->slots = slots;
    f->fixture->runs->context->now = NOW;
    for (int i = 0; i < deployments; i++) {
        f->runners[i] = make_runner(f->fixture->io->runners, pool);
    }
    return f;
}

static void lines_that_move_have_the_share_of_their_deployment(void **state)
{
    flood_t *f = make_flood(*state, 1, 1200);

    flood(f);
    assert_true(f->most_dedicated <= AGENT_BATCH_MAX_DEDICATED / 2 + BATCH);
    assert_true(f->most_shared <= AGENT_BATCH_MAX_SHARED / 2 + BATCH);
    /* Short lines of others wait for about 250 ms of these. */
    assert_true(f->last_shared < 10 * LINE);
    assert_int_equal(f->refused + f->full, 0);
}

static void lines_that_move_have_the_share_of_their_account(void **state)
{
    flood_t *f = make_flood(*state, DEPLOYMENTS, 400);

    for (int i = 0; i < DEPLOYMENTS; i++) {
        char id[8];

        apr_snprintf(id, sizeof(id), "%d", i);
        agent_account_map_set(&f->queue->accounts, id, "account");
    }
    flood(f);
    assert_true(f->most_dedicated <= AGENT_BATCH_MAX_DEDICATED / 4 * 3
                    + AGENT_BATCH_MEDIUM_ROOM + BATCH);
    assert_int_equal(f->refused + f->full, 0);
}

static void lines_that_move_leave_room_to_other_accounts(void **state)
{
    flood_t *f = make_flood(*state, DEPLOYMENTS, 400);

    flood(f);
    assert_true(f->most_dedicated <= AGENT_BATCH_MAX_DEDICATED);
    assert_int_equal(f->refused + f->full, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(lines_that_move_have_the_share_of_their_deployment),
        CHECK_TEST(lines_that_move_have_the_share_of_their_account),
        CHECK_TEST(lines_that_move_leave_room_to_other_accounts),
    };

    return CHECK_RUN(tests);
}
