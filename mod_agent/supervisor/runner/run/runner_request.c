/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of runs; see runner_request.h. */
#include "runner_request.h"

#include <string.h>

#include <apr_strings.h>

/* The operations, in the order of agent_runner_request_op_t. */
static const char *const op_names[AGENT_RUNNER_REQUEST_OPS] = {
    "state.get",        "checkpoint.get", "checkpoint.list",
    "checkpoint.delta", "blob.get",       "store"};

void agent_runner_request_init(agent_runner_request_queue_t *queue,
                               agent_backlog_table_t *backlogs,
                               apr_pool_t *pool)
{
    queue->backlogs = backlogs;
    queue->pool = pool;
    APR_RING_INIT(&queue->classes, agent_runner_request_class_t, link);
}

void agent_runner_request_begin(agent_lease_t *lease, const char *checkpoint_id)
{
    agent_runner_request_t *request = &lease->request;

    if (checkpoint_id != NULL) {
        memcpy(request->checkpoint_id, checkpoint_id, AGENT_UUID_SIZE - 1);
        request->checkpoint_id[AGENT_UUID_SIZE - 1] = '\0';
    }
}

/* ---- the queue ---- */

static agent_runner_request_class_t *class_of(agent_lease_t *lease)
{
    return &lease->group->requests[lease->request.long_bytes > 0];
}

static void enter_queue(agent_runner_request_queue_t *queue,
                        agent_lease_t *lease)
{
    agent_runner_request_class_t *class = class_of(lease);

    lease->request.is_queued = true;
    if (APR_RING_EMPTY(&class->waiting, agent_lease_t, request.link)) {
        APR_RING_INSERT_TAIL(&queue->classes, class,
                             agent_runner_request_class_t, link);
    }
    APR_RING_INSERT_TAIL(&class->waiting, lease, agent_lease_t, request.link);
}

/* The line of the request is not kept. */
static void keep_args(agent_runner_request_queue_t *queue, agent_lease_t *lease,
                      const agent_line_t *line)
{
    agent_runner_request_t *request = &lease->request;

    if (request->op == AGENT_RUNNER_REQUEST_STATE || line->args_length == 0) {
        return;
    }
    apr_pool_create(&request->pool, queue->pool);
    request->args = apr_pstrmemdup(request->pool, line->args,
                                   line->args_length);
    if (line->args_length > AGENT_RUNNER_REQUEST_MAX_ARGS) {
        request->long_bytes = line->args_length;
        agent_backlog_add(queue->backlogs, lease->deployment_id,
                          AGENT_BACKLOG_DEDICATED, request->long_bytes);
    }
}

/* Whether the request is for records of the graph library, which may still be
 * on their way to the database. */
static bool reads_records(const agent_runner_request_t *request)
{
    return request->op != AGENT_RUNNER_REQUEST_STATE
        && request->op != AGENT_RUNNER_REQUEST_STORE;
}

static void start_waiting(agent_runner_request_queue_t *queue,
                          agent_lease_t *lease, const agent_line_t *line)
{
    agent_runner_request_t *request = &lease->request;

    request->is_waiting = true;
    request->retry = (agent_retry_t){0};
    memcpy(request->cursor, line->cursor, line->cursor_length);
    request->cursor[line->cursor_length] = '\0';
    request->after = reads_records(request) ? lease->records.sent : 0;
    keep_args(queue, lease, line);
    agent_runner_request_save(queue, lease);
}

void agent_runner_request_save(agent_runner_request_queue_t *queue,
                               agent_lease_t *lease)
{
    const agent_runner_request_t *request = &lease->request;

    if (request->is_waiting && !request->is_queued
        && request->after <= lease->records.saved) {
        enter_queue(queue, lease);
    }
}

static void move_class_back(agent_runner_request_queue_t *queue,
                            agent_runner_request_class_t *class)
{
    APR_RING_REMOVE(class, link);
    APR_RING_INSERT_TAIL(&queue->classes, class, agent_runner_request_class_t,
                         link);
}

static void leave_queue(agent_runner_request_queue_t *queue,
                        agent_lease_t *lease)
{
    agent_runner_request_class_t *class = class_of(lease);

    APR_RING_REMOVE(lease, request.link);
    lease->request.is_queued = false;
    if (APR_RING_EMPTY(&class->waiting, agent_lease_t, request.link)) {
        APR_RING_REMOVE(class, link);
    }
    else {
        move_class_back(queue, class);
    }
}

static void stop_waiting(agent_runner_request_queue_t *queue,
                         agent_lease_t *lease)
{
    agent_runner_request_t *request = &lease->request;

    if (request->is_queued) {
        leave_queue(queue, lease);
    }
    if (request->pool != NULL) {
        apr_pool_destroy(request->pool);
    }
    agent_backlog_remove(queue->backlogs, lease->deployment_id,
                         AGENT_BACKLOG_DEDICATED, request->long_bytes);
    request->long_bytes = 0;
    request->pool = NULL;
    request->args = NULL;
    request->is_waiting = false;
    request->is_sent = false;
}

agent_lease_t *agent_runner_request_find(
    const agent_runner_request_queue_t *queue,
    bool (*may_send)(void *baton, const agent_lease_t *lease), void *baton)
{
    agent_runner_request_class_t *class;

    AGENT_RING_EACH(class, &queue->classes, agent_runner_request_class_t, link)
    {
        agent_lease_t *lease;

        AGENT_RING_EACH(lease, &class->waiting, agent_lease_t, request.link)
        {
            if (may_send(baton, lease)) {
                return lease;
            }
            if (lease->request.retry.retry_at == 0) {
                break;
            }
        }
    }
    return NULL;
}

void agent_runner_request_postpone(agent_runner_request_queue_t *queue,
                                   agent_lease_t *lease)
{
    agent_runner_request_class_t *class = class_of(lease);

    lease->request.is_sent = false;
    APR_RING_REMOVE(lease, request.link);
    APR_RING_INSERT_TAIL(&class->waiting, lease, agent_lease_t, request.link);
    move_class_back(queue, class);
}

/* ---- replies ---- */

static void note_reply(agent_lease_t *lease)
{
    const agent_runner_t *runner = lease->group->runner;

    lease->request.reply_end = runner->written
        + agent_buffer_length(&runner->input);
}

static void say_error(agent_lease_t *lease, const char *code,
                      const char *message)
{
    agent_protocol_refuse(agent_runner_input(lease->group->runner), &lease->key,
                          lease->request.id, code, message);
    note_reply(lease);
}

static void say_part(agent_lease_t *lease, const char *part, const char *cursor)
{
    agent_protocol_reply(agent_runner_input(lease->group->runner), &lease->key,
                         lease->request.id, part, cursor);
    note_reply(lease);
    if (lease->request.op == AGENT_RUNNER_REQUEST_STATE) {
        lease->request.is_done = cursor == NULL;
        apr_cpystrn(lease->request.state_cursor, cursor != NULL ? cursor : "",
                    sizeof(lease->request.state_cursor));
    }
}

void agent_runner_request_reply(agent_runner_request_queue_t *queue,
                                agent_lease_t *lease, const char *part,
                                const char *cursor)
{
    stop_waiting(queue, lease);
    if (cursor != NULL && strlen(cursor) >= AGENT_RUNNER_REQUEST_CURSOR_SIZE) {
        say_error(lease, "state_unreadable", "The state cannot be read.");
        return;
    }
    say_part(lease, part, cursor);
}

void agent_runner_request_refuse(agent_runner_request_queue_t *queue,
                                 agent_lease_t *lease, const char *code,
                                 const char *message)
{
    stop_waiting(queue, lease);
    say_error(lease, code, message);
}

void agent_runner_request_release(agent_runner_request_queue_t *queue,
                                  agent_lease_t *lease)
{
    if (lease->group != NULL && lease->request.is_waiting) {
        agent_runner_request_refuse(queue, lease, "run_taken",
                                    "The run was taken from this runner.");
    }
}

void agent_runner_request_discard(agent_runner_request_queue_t *queue,
                                  agent_lease_t *lease)
{
    if (lease->group != NULL && lease->request.is_waiting) {
        stop_waiting(queue, lease);
    }
}

/* ---- requests ---- */

/* Refuses a request at once. A run may do this a few times: each costs an
 * iteration of the loop. */
static const char *refuse(agent_lease_t *lease, const char *code,
                          const char *message)
{
    if (++lease->request.refused > AGENT_RUNNER_REQUEST_MAX_REFUSED) {
        return "a run sent too many requests that were refused";
    }
    say_error(lease, code, message);
    return NULL;
}

/* Whether the cursor is where the last part of the state left off. */
static bool continues(const agent_runner_request_t *request,
                      const agent_line_t *line)
{
    return !request->is_done
        && line->cursor_length == strlen(request->state_cursor)
        && memcmp(request->state_cursor, line->cursor, line->cursor_length)
        == 0;
}

/* The operation of a line; AGENT_RUNNER_REQUEST_OPS: there is no such one. */
static agent_runner_request_op_t find_op(const agent_line_t *line)
{
    int op = 0;

    while (op < AGENT_RUNNER_REQUEST_OPS
           && (line->op_length != strlen(op_names[op])
               || memcmp(line->op, op_names[op], line->op_length) != 0)) {
        op++;
    }
    return (agent_runner_request_op_t)op;
}

/* Takes a request for the next part of the state. */
static const char *take_state(agent_runner_request_queue_t *queue,
                              agent_lease_t *lease, const agent_line_t *line)
{
    if (!continues(&lease->request, line)) {
        return refuse(lease, "invalid_cursor",
                      "A run reads its state once, part by part.");
    }
    if (lease->request.checkpoint_id[0] == '\0') {
        say_part(lease, "{\"values\":{}}", NULL);
        return NULL;
    }
    start_waiting(queue, lease, line);
    return NULL;
}

const char *agent_runner_request_take(agent_runner_request_queue_t *queue,
                                      agent_lease_t *lease,
                                      const agent_line_t *line)
{
    agent_runner_request_t *request = &lease->request;

    if (request->is_waiting
        || request->reply_end > lease->group->runner->written) {
        return "a run sent a request before it read the last reply";
    }
    if (request->refused > AGENT_RUNNER_REQUEST_MAX_REFUSED) {
        return "a run sent too many requests that were refused";
    }
    request->id = line->request_id;
    if (lease->state != AGENT_LEASE_HELD) {
        return refuse(lease, "run_taken",
                      "The run was taken from this runner.");
    }
    request->op = find_op(line);
    if (request->op == AGENT_RUNNER_REQUEST_OPS) {
        return refuse(lease, "unknown_op", "There is no such operation.");
    }
    if (request->op == AGENT_RUNNER_REQUEST_STATE) {
        return take_state(queue, lease, line);
    }
    start_waiting(queue, lease, line);
    return NULL;
}
