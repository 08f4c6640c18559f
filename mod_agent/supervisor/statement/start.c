/* SPDX-License-Identifier: Apache-2.0 */
/* compose_starts; see start.h. */
#include "start.h"

#include <string.h>

#include <apr_strings.h>

#include "../runner/run/run_end.h"
#include "retry.h"

#define MAX_STARTS 50

enum { COL_RUN, COL_EPOCH, COL_START };

void agent_start_init(agent_start_queue_t *queue)
{
    agent_adaptive_limit_init(&queue->limit, MAX_STARTS);
}

/* ---- room ---- */

static apr_size_t count_input(const agent_runner_table_t *table)
{
    const agent_runner_t *runner;
    apr_size_t bytes = 0;

    AGENT_RING_EACH(runner, &table->pending, agent_runner_t, pending_link)
    {
        bytes += agent_buffer_length(&runner->input);
    }
    return bytes;
}

apr_size_t agent_start_claim_bytes(const agent_runner_table_t *table)
{
    apr_size_t input = count_input(table);

    if (input > AGENT_START_RUNNER_BYTES) {
        return input < AGENT_START_ALL_BYTES ? AGENT_START_SMALL_BYTES : 0;
    }
    return AGENT_START_CLAIM_BYTES;
}

/* Whether `more` bytes can be added to a sum that is at most `most`; to 0, any
 * number can. */
static bool has_room(apr_size_t sum, apr_size_t more, apr_size_t most)
{
    return sum == 0 || sum + more <= most;
}

/*
 * Whether a runner with `own` bytes of unread input may get `more`; `all`: that
 * of all runners. It may have a third of the room that the others leave, so
 * that a runner that does not read delays no run of another. A runner that has
 * read all may always get a line.
 */
static bool has_share(apr_size_t own, apr_size_t all, apr_size_t more)
{
    apr_size_t sum = all + more;

    return own == 0
        || (sum <= AGENT_START_ALL_BYTES
            && own + more <= (AGENT_START_ALL_BYTES - sum) / 2);
}

bool agent_start_has_room(const agent_runner_table_t *table,
                          const agent_runner_t *runner, apr_size_t bytes)
{
    apr_size_t own = agent_buffer_length(&runner->input);

    return own <= AGENT_START_RUNNER_BYTES
        && has_share(own, count_input(table), bytes);
}

static apr_size_t started_max(const agent_runner_t *runner)
{
    apr_int64_t limit = runner->runner_pool->config->memory;
    apr_size_t memory = limit > 0 ? (apr_size_t)limit
                                  : AGENT_START_MEMORY_DEFAULT;

    return memory / AGENT_START_MEMORY_PART;
}

/* The bytes that the run takes in its runner when it begins. */
static apr_size_t weigh(const agent_lease_t *lease)
{
    return lease->start_bytes + lease->request.state_bytes;
}

/* Whether the run may start whatever else its runner executes. */
static bool is_small(const agent_lease_t *lease)
{
    const agent_runner_t *runner = lease->group->runner;

    return weigh(lease) <= started_max(runner) / (apr_size_t)runner->slots;
}

/*
 * Whether a run that is not small may start now: its runner, which has start
 * lines and states of `started` bytes, has room for another one, and half of
 * its deployment's share of dedicated batches is free, counting the credit that
 * this runner's runs reserved and requested. A run writes checkpoints as large
 * as the state from which it starts.
 */
static bool fits(const agent_runs_t *runs, apr_size_t started,
                 const agent_lease_t *lease)
{
    return has_room(started, weigh(lease), started_max(lease->group->runner))
        && agent_credit_is_half_free(&runs->credits, lease);
}

/* The first run that waits at a runner and is not small; NULL: none. */
static const agent_lease_t *find_first_large(const agent_runner_t *runner)
{
    const agent_lease_t *lease;

    AGENT_RING_EACH(lease, &runner->group.leases, agent_lease_t, link)
    {
        if (agent_lease_waits(lease) && !is_small(lease)) {
            return lease;
        }
    }
    return NULL;
}

bool agent_start_fits_now(const agent_runs_t *runs, const agent_lease_t *lease)
{
    const agent_runner_t *runner = lease->group->runner;

    if (agent_lease_waits_for_previous(lease)) {
        return false;
    }
    if (lease->start_bytes > AGENT_START_SMALL_BYTES
        && agent_buffer_length(&runner->input) > AGENT_START_RUNNER_BYTES) {
        return false;
    }
    return is_small(lease)
        || (fits(runs, runner->group.started_bytes, lease)
            && find_first_large(runner) == lease);
}

/* ---- choosing ---- */

/* The waiting runs whose lines one statement composes. */
typedef struct portion_t {
    /* Of agent_lease_t *; NULL: the runs are only counted. */
    apr_array_header_t *leases;
    int count;
    apr_size_t bytes;
    /* Unread input of all runners, these lines included. */
    apr_size_t input;
    /* When the next run is due of those that failed and wait. */
    apr_time_t next;
} portion_t;

/* Bytes of one runner, the chosen lines included. */
typedef struct load_t {
    /* Its unread input. */
    apr_size_t input;
    /* The start lines and states of its unfinished runs. */
    apr_size_t started;
    /* A run waits for others to end; later ones must not take the room that
     * becomes free. */
    bool is_full;
    /* A long line waits for room in the pipe or the statement; so do all long
     * lines after it. */
    bool is_blocked;
} load_t;

/* Whether the run waits for others of its runner to end. */
static bool waits_for_others(const load_t *load, const agent_runs_t *runs,
                             const agent_lease_t *lease)
{
    return !is_small(lease)
        && (load->is_full || !fits(runs, load->started, lease));
}

/* Whether a line waits for room in the statement or the pipe. Lines of more
 * than AGENT_START_SMALL_BYTES keep their order; shorter ones may overtake
 * them. */
static bool waits_for_room(const portion_t *portion, const load_t *load,
                           apr_size_t bytes)
{
    if (!has_room(portion->bytes, bytes, AGENT_START_BYTES)
        || !has_share(load->input, portion->input, bytes)) {
        return true;
    }
    return bytes > AGENT_START_SMALL_BYTES
        && (load->is_blocked || load->input > AGENT_START_RUNNER_BYTES);
}

/* Takes the line of a run, or else sets in *load that later ones wait too. */
static void take_line(portion_t *portion, load_t *load,
                      const agent_runs_t *runs, agent_lease_t *lease)
{
    apr_size_t bytes = lease->start_bytes;

    if (waits_for_others(load, runs, lease)) {
        load->is_full = true;
        return;
    }
    if (waits_for_room(portion, load, bytes)) {
        load->is_blocked |= bytes > AGENT_START_SMALL_BYTES;
        return;
    }
    if (portion->leases != NULL) {
        APR_ARRAY_PUSH(portion->leases, agent_lease_t *) = lease;
    }
    portion->count++;
    portion->bytes += bytes;
    portion->input += bytes;
    load->input += bytes;
    load->started += weigh(lease);
}

static void take_of_runner(portion_t *portion, const agent_start_queue_t *queue,
                           agent_runner_t *runner)
{
    load_t load = {.input = agent_buffer_length(&runner->input),
                   .started = runner->group.started_bytes};
    agent_lease_t *lease;

    AGENT_RING_EACH(lease, &runner->group.leases, agent_lease_t, link)
    {
        if (portion->count >= queue->limit.current) {
            return;
        }
        if (agent_lease_waits(lease) && !agent_lease_waits_for_previous(lease)
            && !agent_retry_waits(&lease->start_retry, queue->worker,
                                  &portion->next)) {
            take_line(portion, &load, queue->runs, lease);
        }
    }
}

/* Each runner's runs are taken in the order in which it got them. */
static void choose_portion(portion_t *portion, const agent_start_queue_t *queue,
                           apr_array_header_t *leases)
{
    agent_runner_t *runner;

    memset(portion, 0, sizeof(*portion));
    portion->leases = leases;
    portion->next = AGENT_CLOCK_NEVER;
    portion->input = count_input(queue->runners);
    AGENT_RING_EACH(runner, &queue->runners->all, agent_runner_t, link)
    {
        if (runner->state == AGENT_RUNNER_READY) {
            take_of_runner(portion, queue, runner);
        }
    }
}

static apr_time_t due_start(void *part)
{
    const agent_start_queue_t *queue = part;
    portion_t portion;

    if (queue->runs->leases.waiting == 0 || !agent_worker_is_live(queue->worker)
        || queue->runners->is_stopped) {
        return AGENT_CLOCK_NEVER;
    }
    choose_portion(&portion, queue, NULL);
    return portion.count > 0 ? queue->retry_at : portion.next;
}

static const agent_statement_t compose_starts = {
    .name = "agent_compose_starts",
    .params = 2,
    .sql = "select run_id, epoch, start from agent.compose_starts($1, $2)"};

static apr_status_t send_start(void *part, agent_database_t *database,
                               agent_error_t **err)
{
    agent_start_queue_t *queue = part;
    const char *params[2];
    agent_buffer_t items;
    portion_t portion;

    choose_portion(
        &portion, queue,
        apr_array_make(database->scratch, 8, sizeof(agent_lease_t *)));
    agent_buffer_init(&items, database->scratch);
    for (int i = 0; i < portion.count; i++) {
        agent_lease_t *lease = APR_ARRAY_IDX(portion.leases, i,
                                             agent_lease_t *);

        lease->is_start_sent = true;
        agent_lease_print(&items, &lease->key, lease->deployment_id);
    }
    agent_buffer_append(&items, "]", 2);
    queue->in_flight = portion.count;
    params[0] = queue->worker->id;
    params[1] = agent_buffer_text(&items);
    return agent_db_send(database->db, &compose_starts, params, err,
                         database->scratch);
}

/* ---- results ---- */

/* Why a line was not composed: the error in which its run ends. */
typedef struct obstacle_t {
    agent_failure_t failure;
    const char *error;
    const char *message;
} obstacle_t;

typedef void visit_t(const agent_start_queue_t *queue, agent_lease_t *lease,
                     const obstacle_t *obstacle);

/* Calls visit for the leases of the last statement that still wait. */
static void for_each_sent(const agent_start_queue_t *queue, visit_t *visit,
                          const obstacle_t *obstacle)
{
    agent_runner_t *runner;
    agent_lease_t *lease;
    agent_lease_t *next;

    AGENT_RING_EACH(runner, &queue->runners->all, agent_runner_t, link)
    {
        AGENT_RING_EACH_SAFE(lease, next, &runner->group.leases, agent_lease_t,
                             link)
        {
            if (lease->is_start_sent) {
                lease->is_start_sent = false;
                if (agent_lease_waits(lease)) {
                    visit(queue, lease, obstacle);
                }
            }
        }
    }
}

static void lose(const agent_start_queue_t *queue, agent_lease_t *lease,
                 const obstacle_t *obstacle)
{
    agent_run_end_lose(queue->runs, lease);
}

static void receive_start(void *part, const agent_db_result_t *result)
{
    agent_start_queue_t *queue = part;
    agent_runs_t *runs = queue->runs;

    for (int row = 0; row < agent_db_rows(result); row++) {
        agent_lease_key_t key = {.epoch = (apr_int32_t)apr_atoi64(
                                     agent_db_value(result, row, COL_EPOCH))};
        agent_lease_t *lease;

        memcpy(key.run_id, agent_db_value(result, row, COL_RUN),
               sizeof(key.run_id));
        lease = agent_lease_find(&runs->leases, &key);
        if (lease != NULL && lease->group != NULL && agent_lease_waits(lease)) {
            agent_patience_save(&queue->composed, lease->start_bytes,
                                runs->context->now);
            agent_start_hand_over(runs, lease,
                                  agent_db_value(result, row, COL_START));
        }
    }
    /* Leases without a row in the result are lost. */
    for_each_sent(queue, lose, NULL);
    agent_adaptive_limit_raise(&queue->limit);
}

/* Lets the other runs of its runner be tried first. */
static void postpone(const agent_start_queue_t *queue, agent_lease_t *lease,
                     const obstacle_t *obstacle)
{
    agent_lease_ring_t *ring = &lease->group->leases;

    APR_RING_REMOVE(lease, link);
    APR_RING_INSERT_TAIL(ring, lease, agent_lease_t, link);
}

static void give_up(const agent_start_queue_t *queue, agent_lease_t *lease,
                    const obstacle_t *obstacle)
{
    agent_runs_t *runs = queue->runs;

    agent_report_write(runs->context, AGENT_LOG_ERR, "AGT0371", 0,
                       "the start of run %.36s could not be composed: %s",
                       lease->key.run_id,
                       agent_failure_cause(obstacle->failure));
    agent_run_end_fail(runs, lease, "error", obstacle->error,
                       obstacle->message);
    agent_run_end_detach(runs, lease);
}

static void count_failure(const agent_start_queue_t *queue,
                          agent_lease_t *lease, const obstacle_t *obstacle)
{
    const agent_retry_statement_t statement = {.worker = queue->worker,
                                               .subject = "the start of run",
                                               .id = lease->key.run_id,
                                               .others = &queue->composed,
                                               .cost = lease->start_bytes};

    if (agent_retry_fail(&lease->start_retry, &statement, obstacle->failure)) {
        give_up(queue, lease, obstacle);
    }
    else {
        postpone(queue, lease, obstacle);
    }
}

/* The next statement composes its line again. */
static void keep(const agent_start_queue_t *queue, agent_lease_t *lease,
                 const obstacle_t *obstacle)
{
}

static const obstacle_t *find_obstacle(agent_failure_t failure)
{
    static const obstacle_t slow = {
        AGENT_FAILURE_TIMEOUT, "StartTimeoutError",
        "The state that the run starts from could not be read in time."};
    static const obstacle_t lost = {
        AGENT_FAILURE_LOST, "StartFailedError",
        "The connection to the database was lost each time when the state that "
        "the run starts from was read."};
    static const obstacle_t refused = {
        AGENT_FAILURE_OTHER, "StartFailedError",
        "The database refused to read the state that the run starts from; the "
        "server's error log says why (AGT0313)."};

    if (failure == AGENT_FAILURE_TIMEOUT) {
        return &slow;
    }
    return failure == AGENT_FAILURE_LOST ? &lost : &refused;
}

/* Only the failures of a line alone are counted; not those that may pass, nor
 * cancels by an operator or a tool. */
static visit_t *choose_visit(agent_failure_t failure, int lines)
{
    if (lines > 1 || agent_failure_is_transient(failure)) {
        return keep;
    }
    return failure == AGENT_FAILURE_CANCEL ? postpone : count_failure;
}

static void fail_start(void *part, agent_failure_t failure)
{
    agent_start_queue_t *queue = part;

    queue->retry_at = agent_database_retry_at(queue->runs->context, failure);
    for_each_sent(queue, choose_visit(failure, queue->in_flight),
                  find_obstacle(failure));
    if (!agent_failure_is_transient(failure)) {
        agent_adaptive_limit_lower(&queue->limit, queue->in_flight);
    }
}

void agent_start_on_connected(agent_start_queue_t *queue)
{
    agent_runner_t *runner;
    agent_lease_t *lease;
    agent_lease_t *next;

    AGENT_RING_EACH(runner, &queue->runners->all, agent_runner_t, link)
    {
        AGENT_RING_EACH_SAFE(lease, next, &runner->group.leases, agent_lease_t,
                             link)
        {
            if (agent_lease_waits(lease) && !lease->is_start_sent
                && agent_retry_count_crash(&lease->start_retry,
                                           queue->worker)) {
                give_up(queue, lease, find_obstacle(AGENT_FAILURE_LOST));
            }
        }
    }
}

const agent_operation_t agent_start_operation = {
    "compose_starts", due_start, send_start, receive_start, fail_start};
