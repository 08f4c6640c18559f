/* SPDX-License-Identifier: Apache-2.0 */
/* Replies to requests of runs; see read_parts.h. */
#include "read_parts.h"

#include <string.h>

#include <apr_strings.h>

#include "../../core/scan.h"
#include "retry.h"

/* Bytes of a reply without its part. */
#define REPLY_BYTES 512
/* Bytes of a reply with a whole part of a value. */
#define LINE_BYTES (AGENT_PROTOCOL_MAX_PART / 3 * 4 + REPLY_BYTES)

enum { COL_CODE, COL_BODY, COL_CURSOR };

static bool fits(const agent_read_parts_t *parts, const agent_lease_t *lease)
{
    return agent_start_has_room(parts->runners, lease->group->runner,
                                LINE_BYTES);
}

/* The search for the next request. */
typedef struct search_t {
    const agent_read_parts_t *parts;
    /* When the next one is due of those that failed and wait. */
    apr_time_t next;
} search_t;

/* Whether the deployment of the run waits since it has ended connections. */
static bool pauses(search_t *search, const agent_lease_t *lease)
{
    const agent_faulty_table_t *faulty = &search->parts->runs->batches.faulty;
    apr_time_t resume_at = agent_faulty_resume_at(faulty, lease->deployment_id);

    if (resume_at <= faulty->context->now) {
        return false;
    }
    search->next = AGENT_MIN(search->next, resume_at);
    return true;
}

/* Long arguments do not wait for the runner: without room for a part the reply
 * has none, and says where to continue. */
static bool may_send(void *baton, const agent_lease_t *lease)
{
    search_t *search = baton;
    const agent_read_parts_t *parts = search->parts;

    return lease->group->runner->state < AGENT_RUNNER_KILLED
        && (lease->request.long_bytes > 0 || fits(parts, lease))
        && !agent_retry_waits(&lease->request.retry, parts->worker,
                              &search->next)
        && !pauses(search, lease);
}

/* next: when one is due if there is none now. */
static agent_lease_t *find_next(const agent_read_parts_t *parts,
                                apr_time_t *next)
{
    search_t search = {.parts = parts, .next = AGENT_CLOCK_NEVER};
    agent_lease_t *lease = agent_runner_request_find(&parts->runs->requests,
                                                     may_send, &search);

    *next = search.next;
    return lease;
}

static apr_time_t due_part(void *part)
{
    const agent_read_parts_t *parts = part;
    apr_time_t next;

    if (!agent_worker_is_live(parts->worker) || parts->runners->is_stopped) {
        return AGENT_CLOCK_NEVER;
    }
    return find_next(parts, &next) != NULL ? parts->runs->context->now : next;
}

/* Deployment, thread, the state's checkpoint or the arguments, cursor, bytes.
 */
#define READ_PARAMS 5

/* Worker, deployment, run, epoch, arguments, cursor, bytes, ttl. When the
 * connection is lost it may be executed twice: the puts are the same. */
#define STORE_PARAMS 8

/* In the order of agent_runner_request_op_t. */
static const agent_statement_t statements[AGENT_RUNNER_REQUEST_OPS] = {
    {.name = "agent_read_state",
     .params = READ_PARAMS,
     .sql =
         "select code, body, cursor from agent.read_state($1, $2, $3, $4, $5)"},
    {.name = "agent_read_checkpoint",
     .params = READ_PARAMS,
     .sql = "select code, body, cursor from agent.read_checkpoint($1, $2, $3, "
            "$4, $5)"},
    {.name = "agent_read_checkpoints",
     .params = READ_PARAMS,
     .sql = "select code, body, cursor from agent.read_checkpoints($1, $2, $3, "
            "$4, $5)"},
    {.name = "agent_read_delta",
     .params = READ_PARAMS,
     .sql =
         "select code, body, cursor from agent.read_delta($1, $2, $3, $4, $5)"},
    {.name = "agent_read_blobs",
     .params = READ_PARAMS,
     .sql =
         "select code, body, cursor from agent.read_blobs($1, $2, $3, $4, $5)"},
    {.name = "agent_use_store",
     .params = STORE_PARAMS,
     .sql = "select code, body, cursor from agent.use_store($1, $2, $3, $4, "
            "$5, $6, $7, $8)"},
};

static const char *third_param(const agent_runner_request_t *request)
{
    if (request->op == AGENT_RUNNER_REQUEST_STATE) {
        return request->checkpoint_id;
    }
    return request->args != NULL ? request->args : "{}";
}

/* An interval of PostgreSQL; NULL: none. */
static const char *print_ttl(const agent_lease_group_t *group, apr_pool_t *pool)
{
    return group != NULL && group->store_ttl > 0 ? apr_psprintf(
               pool, "%" APR_TIME_T_FMT " s", apr_time_sec(group->store_ttl))
                                                 : NULL;
}

/* Sets the parameters; those that are not borrowed are in scratch. */
static void set_params(const char *params[STORE_PARAMS],
                       const agent_read_parts_t *parts,
                       const agent_lease_t *lease, apr_pool_t *scratch)
{
    const agent_runner_request_t *request = &lease->request;
    int at = 0;

    if (request->op == AGENT_RUNNER_REQUEST_STORE) {
        params[at++] = parts->worker->id;
        params[at++] = lease->deployment_id;
        params[at++] = apr_pstrmemdup(scratch, lease->key.run_id,
                                      sizeof(lease->key.run_id));
        params[at++] = apr_itoa(scratch, lease->key.epoch);
    }
    else {
        params[at++] = lease->deployment_id;
        params[at++] = lease->thread_id;
    }
    params[at++] = third_param(request);
    params[at++] = request->cursor[0] != '\0' ? request->cursor : NULL;
    params[at++] = apr_itoa(scratch,
                            fits(parts, lease) ? AGENT_READ_PARTS_BYTES : 0);
    if (request->op == AGENT_RUNNER_REQUEST_STORE) {
        params[at] = print_ttl(lease->group, scratch);
    }
}

static apr_status_t send_part(void *part, agent_database_t *database,
                              agent_error_t **err)
{
    agent_read_parts_t *parts = part;
    apr_time_t next;
    agent_lease_t *lease = find_next(parts, &next);
    const char *params[STORE_PARAMS];

    /* due_part() has found one. */
    lease->request.is_sent = true;
    parts->key = lease->key;
    set_params(params, parts, lease, database->scratch);
    return agent_db_send(database->db, &statements[lease->request.op], params,
                         err, database->scratch);
}

/* The run of the statement in flight, unless it no longer waits for it. */
static agent_lease_t *find_sent(const agent_read_parts_t *parts)
{
    agent_lease_t *lease = agent_lease_find(&parts->runs->leases, &parts->key);

    return lease != NULL && lease->request.is_sent ? lease : NULL;
}

/* The part that the rows of a result are, in pool unless it is one row; NULL
 * when a row has none, since one of a stored value is missing. */
static const char *join_bodies(const agent_db_result_t *result,
                               apr_pool_t *pool)
{
    int rows = agent_db_rows(result);
    struct iovec *bodies;

    if (rows == 1) {
        return agent_db_value(result, 0, COL_BODY);
    }
    bodies = apr_palloc(pool, (apr_size_t)rows * sizeof(*bodies));
    for (int row = 0; row < rows; row++) {
        const char *body = agent_db_value(result, row, COL_BODY);

        if (body == NULL) {
            return NULL;
        }
        bodies[row].iov_base = (void *)body;
        bodies[row].iov_len = strlen(body);
    }
    return apr_pstrcatv(pool, bodies, (apr_size_t)rows, NULL);
}

/* A part that breaks the protocol would end the runner with all its runs: a row
 * may be older than the checks of what is stored, or written by hand. */
static void hand_over(agent_runs_t *runs, agent_lease_t *lease,
                      const char *part, const char *cursor)
{
    agent_scan_t scan = {.max_weight = AGENT_START_WEIGHT};
    apr_size_t length = part != NULL ? strlen(part) : 0;

    if (part == NULL) {
        agent_runner_request_refuse(&runs->requests, lease, "state_unreadable",
                                    "A part of the value is missing in the "
                                    "database.");
    }
    else if (length + REPLY_BYTES > AGENT_PROTOCOL_MAX_LINE
             || (!agent_scan_json(&scan, part, length)
                 && scan.code == AGENT_SCAN_TOO_HEAVY)) {
        agent_runner_request_refuse(
            &runs->requests, lease, "state_too_large",
            "An element of the result is larger than a runner "
            "can be given.");
    }
    else if (scan.code != AGENT_SCAN_OK) {
        agent_runner_request_refuse(
            &runs->requests, lease, "state_unreadable",
            "The result is not what a runner can be given.");
    }
    else {
        agent_runner_request_reply(&runs->requests, lease, part, cursor);
    }
}

/* A code of the database, and the message for its runner. */
typedef struct refusal_t {
    const char *code;
    const char *message;
    /* The request is wrong: a few of these count as a breach. */
    bool is_wrong;
} refusal_t;

static const refusal_t refusals[] = {
    {"invalid_args", "The arguments are not those of the operation.", true},
    {"invalid_cursor", "The cursor is not one of this result.", true},
    {"run_taken", "The run was taken from this runner.", false},
    {"too_many_items", "It would examine more items than a request may.",
     false},
};

static void refuse(agent_runs_t *runs, agent_lease_t *lease, const char *code)
{
    for (apr_size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
        const refusal_t *refusal = &refusals[i];

        if (strcmp(code, refusal->code) == 0) {
            lease->request.refused += refusal->is_wrong;
            agent_runner_request_refuse(&runs->requests, lease, refusal->code,
                                        refusal->message);
            return;
        }
    }
    agent_runner_request_refuse(&runs->requests, lease, "not_found",
                                "It is not in the database, or was deleted.");
}

static void receive_part(void *part, const agent_db_result_t *result)
{
    agent_read_parts_t *parts = part;
    agent_lease_t *lease = find_sent(parts);
    const char *code;
    apr_pool_t *pool;

    if (lease == NULL) {
        return;
    }
    code = agent_db_value(result, 0, COL_CODE);
    lease->request.retry = (agent_retry_t){0};
    agent_patience_save(&parts->answered, 1, parts->runs->context->now);
    if (strcmp(code, "ok") != 0) {
        refuse(parts->runs, lease, code);
        return;
    }
    apr_pool_create(&pool, parts->runs->context->pool);
    hand_over(parts->runs, lease, join_bodies(result, pool),
              agent_db_value(result, agent_db_rows(result) - 1, COL_CURSOR));
    apr_pool_destroy(pool);
}

static void give_up(const agent_read_parts_t *parts, agent_lease_t *lease,
                    agent_failure_t failure)
{
    agent_report_write(parts->runs->context, AGENT_LOG_ERR, "AGT0375", 0,
                       "a request of run %.36s could not be answered: %s; it "
                       "is refused",
                       lease->key.run_id, agent_failure_cause(failure));
    if (failure == AGENT_FAILURE_TIMEOUT) {
        agent_runner_request_refuse(&parts->runs->requests, lease,
                                    "state_timeout",
                                    "The result could not be read in time.");
    }
    else {
        agent_runner_request_refuse(
            &parts->runs->requests, lease, "state_failed",
            "The database could not read the result; the server's error log "
            "says why (AGT0313).");
    }
}

static void count_failure(const agent_read_parts_t *parts, agent_lease_t *lease,
                          agent_failure_t failure)
{
    const agent_retry_statement_t statement = {.worker = parts->worker,
                                               .subject = "a request of run",
                                               .id = lease->key.run_id,
                                               .others = &parts->answered,
                                               .cost = 1};

    if (agent_retry_fail(&lease->request.retry, &statement, failure)) {
        give_up(parts, lease, failure);
    }
    else {
        agent_runner_request_postpone(&parts->runs->requests, lease);
    }
}

/* The server closes all connections with a notice when a process of it crashes,
 * but the one of that process without. */
static void note_disconnect(agent_read_parts_t *parts,
                            const agent_lease_t *lease, agent_failure_t failure)
{
    const agent_database_t *bulk = parts->worker->bulk;

    if (bulk->lost_at == 0 || bulk->crash_reported_at >= bulk->sent_at) {
        return;
    }
    parts->lost_since = bulk->sent_at;
    apr_cpystrn(parts->lost_deployment, lease->deployment_id,
                sizeof(parts->lost_deployment));
    parts->lost_control = parts->worker->control->connection;
    parts->lost_why = agent_failure_cause(failure);
    agent_faulty_isolate(&parts->runs->batches.faulty, lease->deployment_id);
}

static void end_disconnect(agent_read_parts_t *parts)
{
    const agent_worker_t *worker = parts->worker;

    if (parts->lost_since > 0 && worker->bulk->lost_at == 0
        && worker->control->lost_at == 0) {
        const agent_retry_loss_t loss = {
            .deployment_id = parts->lost_deployment,
            .sent_at = parts->lost_since,
            .control = parts->lost_control,
            .lost = parts->runs->context->now - parts->lost_since,
            .why = parts->lost_why};

        agent_retry_blame(worker, &parts->runs->batches.faulty, &loss,
                          agent_retry_has_crashed(worker, parts->lost_since));
        parts->lost_since = 0;
    }
}

static void fail_part(void *part, agent_failure_t failure)
{
    agent_read_parts_t *parts = part;
    agent_lease_t *lease = find_sent(parts);

    /* The fault of one run, which delays no other. */
    if (failure == AGENT_FAILURE_DATA && lease != NULL
        && lease->request.op != AGENT_RUNNER_REQUEST_STATE) {
        refuse(parts->runs, lease, "invalid_args");
        return;
    }
    if (lease != NULL) {
        note_disconnect(parts, lease, failure);
        count_failure(parts, lease, failure);
    }
}

void agent_read_parts_on_connected(agent_read_parts_t *parts)
{
    apr_hash_index_t *i;

    end_disconnect(parts);
    for (i = apr_hash_first(NULL, parts->runs->leases.by_key); i != NULL;
         i = apr_hash_next(i)) {
        agent_lease_t *lease = apr_hash_this_val(i);

        if (lease->request.is_waiting && !lease->request.is_sent
            && agent_retry_count_crash(&lease->request.retry, parts->worker)) {
            give_up(parts, lease, AGENT_FAILURE_LOST);
        }
    }
}

const agent_operation_t agent_read_parts_operation = {
    "read_parts", due_part, send_part, receive_part, fail_part};
