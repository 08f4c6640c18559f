/* SPDX-License-Identifier: Apache-2.0 */
/* read_state; see read_state.h. */
#include "read_state.h"

#include <string.h>

#include <apr_strings.h>

#include "../../core/scan.h"

/* A request is refused when its statement has failed this often. */
#define MAX_FAILURES 3
/* Bytes of a reply without its part. */
#define REPLY_BYTES 512

enum { COL_CODE, COL_BODY, COL_CURSOR };

static bool has_room(void *baton, const agent_runner_t *runner)
{
    const agent_read_state_t *read = baton;

    return runner->state < AGENT_RUNNER_KILLED
        && agent_start_has_room(read->runners, runner, AGENT_READ_STATE_BYTES);
}

static agent_lease_t *find_next(agent_read_state_t *read)
{
    return agent_request_find(&read->runs->requests, has_room, read);
}

static apr_time_t due_read(void *part)
{
    agent_read_state_t *read = part;

    return agent_worker_is_live(read->worker) && !read->runners->is_stopped
            && find_next(read) != NULL
        ? read->retry_at
        : AGENT_CLOCK_NEVER;
}

static const agent_statement_t read_state = {
    .name = "agent_read_state",
    .params = 5,
    .is_repeatable = true,
    .sql =
        "select code, body, cursor from agent.read_state($1, $2, $3, $4, $5)"};

static apr_status_t send_read(void *part, agent_database_t *database,
                              agent_error_t **err)
{
    agent_read_state_t *read = part;
    agent_lease_t *lease = find_next(read);
    const char *params[5];

    /* due_read() has found one. */
    lease->request.is_sent = true;
    read->key = lease->key;
    params[0] = lease->deployment_id;
    params[1] = lease->thread_id;
    params[2] = lease->request.checkpoint_id;
    params[3] = lease->request.cursor[0] != '\0' ? lease->request.cursor : NULL;
    params[4] = apr_itoa(database->scratch, AGENT_READ_STATE_BYTES);
    return agent_db_send(database->db, &read_state, params, err,
                         database->scratch);
}

/* The run of the statement in flight, unless it no longer waits for it. */
static agent_lease_t *find_sent(const agent_read_state_t *read)
{
    agent_lease_t *lease = agent_lease_find(&read->runs->leases, &read->key);

    return lease != NULL && lease->request.is_sent ? lease : NULL;
}

/* A part that breaks the protocol would end the runner with all its runs: a row
 * may be older than the checks of what is stored, or written by hand. */
static void hand_over(agent_runs_t *runs, agent_lease_t *lease,
                      const char *part, const char *cursor)
{
    agent_scan_t scan = {.max_weight = AGENT_START_WEIGHT};
    apr_size_t length = strlen(part);

    if (length + REPLY_BYTES > AGENT_PROTOCOL_MAX_LINE
        || (!agent_scan_json(&scan, part, length)
            && scan.code == AGENT_SCAN_TOO_HEAVY)) {
        agent_request_refuse(&runs->requests, lease, "state_too_large",
                             "An element of the state is larger than a runner "
                             "can be given.");
    }
    else if (scan.code != AGENT_SCAN_OK) {
        agent_request_refuse(&runs->requests, lease, "state_unreadable",
                             "The state is not what a runner can be given.");
    }
    else {
        agent_request_reply(&runs->requests, lease, part, cursor);
    }
}

static void receive_read(void *part, const agent_db_result_t *result)
{
    agent_read_state_t *read = part;
    agent_lease_t *lease = find_sent(read);

    if (lease == NULL) {
        return;
    }
    if (strcmp(agent_db_value(result, 0, COL_CODE), "ok") != 0) {
        agent_request_refuse(&read->runs->requests, lease, "not_found",
                             "The checkpoint was deleted.");
        return;
    }
    hand_over(read->runs, lease, agent_db_value(result, 0, COL_BODY),
              agent_db_value(result, 0, COL_CURSOR));
}

static void fail_read(void *part, agent_failure_t failure)
{
    agent_read_state_t *read = part;
    agent_lease_t *lease = find_sent(read);

    read->retry_at = agent_database_retry_at(read->runs->context, failure);
    if (lease == NULL) {
        return;
    }
    if (agent_failure_is_transient(failure)
        || ++lease->request.failures < MAX_FAILURES) {
        agent_request_postpone(&read->runs->requests, lease);
        return;
    }
    agent_report_write(read->runs->context, AGENT_LOG_ERR, "AGT0375", 0,
                       "the state of run %.36s could not be read in time: its "
                       "request is refused",
                       lease->key.run_id);
    agent_request_refuse(&read->runs->requests, lease, "state_timeout",
                         "The state could not be read in time.");
}

const agent_operation_t agent_read_state_operation = {
    "read_state", due_read, send_read, receive_read, fail_read};
