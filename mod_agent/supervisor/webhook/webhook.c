/* SPDX-License-Identifier: Apache-2.0 */
/* The statements about webhooks; see webhook.h. */
#include "webhook.h"

#include <string.h>

#include <apr_strings.h>

#include "../../core/json.h"
#include "../base/order.h"
#include "../statement/expire.h"
#include "loop.h"

/* Between two claims that nothing requested (agent_schedule_webhooks). */
#define CLAIM_INTERVAL apr_time_from_sec(1)
/* Most rows of a claim. */
#define CLAIM_MOST 16
/* Between two sweeps, and after one that failed. */
#define SWEEP_INTERVAL apr_time_from_sec(3600)
#define SWEEP_RETRY    apr_time_from_sec(60)
/* A lease is longer than an attempt by this time, in which the outcome is
 * saved. */
#define LEASE_MARGIN_SEC 30

enum { COL_DEPLOYMENT, COL_RUN, COL_ATTEMPT, COL_URL, COL_BODY, COL_NAME };
enum { SAVED_RUN, SAVED_OUTCOME, SAVED_NEXT_SEC };

/* ---- claiming ---- */

static apr_time_t due_claim(void *part)
{
    const agent_webhook_t *webhook = part;
    const agent_delivery_table_t *table = webhook->deliveries;

    return webhook->context->config->webhooks.is_on
            && agent_worker_is_live(webhook->worker)
            && webhook->context->mode == AGENT_MODE_RUNNING
            && table->count < AGENT_WEBHOOK_SLOTS
        ? webhook->schedule->webhooks_at
        : AGENT_CLOCK_NEVER;
}

static const agent_statement_t claim_webhooks = {
    .name = "agent_claim_webhooks",
    .params = 8,
    .sql = "select deployment_id, run_id, attempt, url, body, deployment from "
           "agent.claim_webhooks($1, $2, $3, $4, $5, $6, $7, $8)"};

/* The ids of the deployments that have pools, as an array literal. */
static const char *print_deployments(const agent_runner_table_t *runners,
                                     apr_pool_t *pool)
{
    apr_array_header_t *ids = apr_array_make(pool, runners->pool_count,
                                             sizeof(const char *));

    for (int i = 0; i < runners->pool_count; i++) {
        APR_ARRAY_PUSH(ids,
                       const char *) = runners->pools[i].graphs.deployment_id;
    }
    return agent_db_array((const char *const *)(void *)ids->elts,
                          (apr_size_t)ids->nelts, pool);
}

/* Negative when large bodies have exceeded the limit. */
static const char *print_room(const agent_delivery_table_t *table,
                              apr_pool_t *pool)
{
    apr_int64_t room = (apr_int64_t)AGENT_WEBHOOK_MAX_BYTES
        - (apr_int64_t)table->bytes;

    return apr_psprintf(pool, "%" APR_INT64_T_FMT, room);
}

static apr_status_t send_claim(void *part, agent_database_t *database,
                               agent_error_t **err)
{
    agent_webhook_t *webhook = part;
    agent_delivery_table_t *table = webhook->deliveries;
    apr_pool_t *pool = database->scratch;
    int lease = (int)apr_time_sec(agent_delivery_timeout(table))
        + LEASE_MARGIN_SEC;
    int room = AGENT_WEBHOOK_SLOTS - table->count;
    const char *params[8];

    webhook->schedule->webhooks_sent_at = webhook->context->now;
    webhook->schedule->webhooks_at = AGENT_CLOCK_NEVER;
    params[0] = webhook->worker->id;
    params[1] = apr_itoa(pool, AGENT_MIN(room, CLAIM_MOST));
    params[2] = apr_itoa(pool, room);
    params[3] = print_room(table, pool);
    params[4] = apr_itoa(pool, lease);
    params[5] = print_deployments(webhook->worker->runners, pool);
    params[6] = apr_itoa(pool, table->guaranteed);
    params[7] = apr_psprintf(pool, "%" APR_SIZE_T_FMT, table->guaranteed_bytes);
    return agent_db_send(database->db, &claim_webhooks, params, err, pool);
}

/* The key of that deployment, or that of all others; NULL: none. name NULL:
 * the deployment is unknown. */
static const agent_webhook_key_t *find_key(const agent_webhook_config_t *config,
                                           const char *name)
{
    const agent_webhook_key_t *found = NULL;

    for (int i = 0; i < config->key_count; i++) {
        const agent_webhook_key_t *key = &config->keys[i];

        if (key->deployment == NULL) {
            found = key;
        }
        else if (name != NULL && strcmp(key->deployment, name) == 0) {
            return key;
        }
    }
    return found;
}

/* The deployment whose headers it gets: its own if it has some; NULL: those
 * for all others. Borrowed from the configuration. */
static const char *name_headers(const agent_webhook_config_t *config,
                                const char *name)
{
    for (int i = 0; name != NULL && i < config->header_count; i++) {
        const char *deployment = config->headers[i].deployment;

        if (deployment != NULL && strcmp(deployment, name) == 0) {
            return deployment;
        }
    }
    return NULL;
}

static agent_delivery_t *read_delivery(agent_delivery_table_t *table,
                                       const agent_db_result_t *result, int row)
{
    agent_delivery_t *delivery;
    apr_pool_t *pool;

    apr_pool_create(&pool, table->context->pool);
    delivery = apr_pcalloc(pool, sizeof(*delivery));
    delivery->table = table;
    delivery->pool = pool;
    apr_cpystrn(delivery->deployment_id,
                agent_db_value(result, row, COL_DEPLOYMENT),
                sizeof(delivery->deployment_id));
    apr_cpystrn(delivery->run_id, agent_db_value(result, row, COL_RUN),
                sizeof(delivery->run_id));
    delivery->attempt = (int)apr_atoi64(
        agent_db_value(result, row, COL_ATTEMPT));
    delivery->key = find_key(&table->context->config->webhooks,
                             agent_db_value(result, row, COL_NAME));
    delivery->deployment = name_headers(&table->context->config->webhooks,
                                        agent_db_value(result, row, COL_NAME));
    delivery->url = apr_pstrdup(pool, agent_db_value(result, row, COL_URL));
    delivery->body = apr_pstrdup(pool, agent_db_value(result, row, COL_BODY));
    delivery->length = strlen(delivery->body);
    return delivery;
}

static void take_delivery(agent_delivery_table_t *table,
                          const agent_db_result_t *result, int row)
{
    agent_delivery_t *delivery = read_delivery(table, result, row);
    agent_delivery_t *same = agent_delivery_find(
        &table->sending, delivery->run_id, delivery->deployment_id);

    if (same != NULL) {
        /* Its lease expired and it was claimed again: the attempt in progress
         * is enough. */
        same->attempt = delivery->attempt;
        apr_pool_destroy(delivery->pool);
        return;
    }
    agent_delivery_add(delivery);
    agent_webhook_loop_send(delivery);
}

static void receive_claim(void *part, const agent_db_result_t *result)
{
    agent_webhook_t *webhook = part;
    agent_delivery_table_t *table = webhook->deliveries;
    int rows = agent_db_rows(result);
    /* More may be due: a deployment gets a part of a claim. */
    apr_time_t next = rows > 0
        ? webhook->context->now
        : agent_database_after(webhook->context, CLAIM_INTERVAL);

    /* Keeps an earlier time: a run that ended during the claim requested the
     * next one. */
    if (next < webhook->schedule->webhooks_at) {
        webhook->schedule->webhooks_at = next;
    }
    /* Not sent while the supervisor drains or stops: mark_worker_dead releases
     * them. */
    for (int row = 0;
         webhook->context->mode == AGENT_MODE_RUNNING && row < rows; row++) {
        take_delivery(table, result, row);
    }
}

static void fail_claim(void *part, agent_failure_t failure)
{
    agent_webhook_t *webhook = part;

    /* If it was executed, its deliveries are due again after their lease. */
    webhook->schedule->webhooks_at = agent_database_retry_at(webhook->context,
                                                             failure);
}

const agent_operation_t agent_webhook_claim_operation = {
    "claim_webhooks", due_claim, send_claim, receive_claim, fail_claim};

/* ---- saving ---- */

static apr_time_t due_save(void *part)
{
    const agent_webhook_t *webhook = part;

    return agent_worker_is_live(webhook->worker)
            && !APR_RING_EMPTY(&webhook->deliveries->ended, agent_delivery_t,
                               link)
        ? webhook->save_at
        : AGENT_CLOCK_NEVER;
}

/* An item as agent.save_webhooks takes it. */
static void print_item(agent_buffer_t *items, const agent_delivery_t *delivery,
                       apr_pool_t *pool)
{
    const agent_webhook_outcome_t *outcome = &delivery->outcome;

    agent_buffer_print(
        items,
        "%s{\"d\":\"%s\",\"r\":\"%s\",\"n\":%d,\"o\":\"%s\","
        "\"t\":%s,\"s\":%s}",
        agent_buffer_length(items) > 0 ? "," : "[", delivery->deployment_id,
        delivery->run_id, delivery->attempt, outcome->result,
        agent_json_quote(outcome->reason, pool),
        outcome->wait > 0 ? apr_itoa(pool, outcome->wait) : "null");
}

static const agent_statement_t save_webhooks = {
    .name = "agent_save_webhooks",
    .params = 2,
    .sql = "select run_id, outcome, next_sec from agent.save_webhooks($1, $2)"};

static apr_status_t send_save(void *part, agent_database_t *database,
                              agent_error_t **err)
{
    agent_webhook_t *webhook = part;
    apr_pool_t *pool = database->scratch;
    agent_delivery_t *delivery;
    agent_buffer_t items;
    const char *params[2];

    agent_buffer_init(&items, pool);
    AGENT_RING_EACH(delivery, &webhook->deliveries->ended, agent_delivery_t,
                    link)
    {
        print_item(&items, delivery, pool);
        delivery->is_saving = true;
    }
    agent_buffer_append(&items, "]", 2);
    params[0] = webhook->worker->id;
    params[1] = agent_buffer_text(&items);
    return agent_db_send(database->db, &save_webhooks, params, err, pool);
}

/* The first failure of a delivery is a warning. Later ones have level info,
 * since there are many while a receiver is down. */
static void report_failure(const agent_delivery_t *delivery, const char *host,
                           const char *next_sec)
{
    if (delivery->attempt == 1) {
        agent_report_repeat(
            delivery->table->context, AGENT_LOG_WARNING, "AGT0361", 0,
            "webhook of run %s not delivered to %s: %s; tried "
            "again for 23 hours, next in %s s",
            delivery->run_id, host, delivery->outcome.reason, next_sec);
    }
    else {
        agent_report_write(delivery->table->context, AGENT_LOG_INFO, "AGT0364",
                           0,
                           "webhook of run %s not delivered to %s at attempt "
                           "%d: %s; tried again in %s s",
                           delivery->run_id, host, delivery->attempt,
                           delivery->outcome.reason, next_sec);
    }
}

/* The log names the host only: the rest of the URL may be secret. */
static void report_end(const agent_delivery_t *delivery, const char *outcome,
                       const char *next_sec)
{
    agent_context_t *context = delivery->table->context;
    const char *host = delivery->target.host ? delivery->target.host : "?";

    if (strcmp(outcome, "delivered") == 0) {
        agent_report_write(context, AGENT_LOG_DEBUG, "AGT0360", 0,
                           "webhook of run %s delivered to %s at attempt %d",
                           delivery->run_id, host, delivery->attempt);
    }
    else if (strcmp(outcome, "again") == 0) {
        report_failure(delivery, host, next_sec != NULL ? next_sec : "?");
    }
    else if (strcmp(outcome, "dead") == 0) {
        agent_report_repeat(context, AGENT_LOG_WARNING, "AGT0362", 0,
                            "webhook of run %s given up, to %s, after attempt "
                            "%d: %s",
                            delivery->run_id, host, delivery->attempt,
                            delivery->outcome.reason);
    }
}

/* The result has one row for each item, in any order. */
static void receive_save(void *part, const agent_db_result_t *result)
{
    agent_webhook_t *webhook = part;
    agent_delivery_table_t *table = webhook->deliveries;
    agent_delivery_t *delivery;
    agent_delivery_t *next;

    for (int row = 0; row < agent_db_rows(result); row++) {
        delivery = agent_delivery_find(
            &table->ended, agent_db_value(result, row, SAVED_RUN), NULL);
        if (delivery != NULL) {
            report_end(delivery, agent_db_value(result, row, SAVED_OUTCOME),
                       agent_db_value(result, row, SAVED_NEXT_SEC));
        }
    }
    AGENT_RING_EACH_SAFE(delivery, next, &table->ended, agent_delivery_t, link)
    {
        if (delivery->is_saving) {
            agent_delivery_free(delivery);
        }
    }
    /* Other webhooks of their receivers may have waited for these slots. */
    webhook->schedule->webhooks_at = webhook->context->now;
}

static void fail_save(void *part, agent_failure_t failure)
{
    agent_webhook_t *webhook = part;

    webhook->save_at = agent_database_retry_at(webhook->context, failure);
    if (failure == AGENT_FAILURE_DATA) {
        /* The same items would fail again. The deliveries are due again after
         * their leases. */
        agent_delivery_free_all(&webhook->deliveries->ended);
    }
}

const agent_operation_t agent_webhook_save_operation = {
    "save_webhooks", due_save, send_save, receive_save, fail_save};

/* ---- sweeping ---- */

static apr_time_t due_sweep(void *part)
{
    const agent_webhook_t *webhook = part;

    return agent_worker_is_live(webhook->worker) ? webhook->sweep_at
                                                 : AGENT_CLOCK_NEVER;
}

static const agent_statement_t sweep_webhooks = {
    .name = "agent_sweep_webhooks",
    .params = 1,
    .sql = "select agent.sweep_webhooks($1)"};

static apr_status_t send_sweep(void *part, agent_database_t *database,
                               agent_error_t **err)
{
    agent_webhook_t *webhook = part;
    const char *params[] = {
        agent_expire_retention(database->context, database->scratch)};

    webhook->sweep_at = agent_database_after(webhook->context, SWEEP_INTERVAL);
    return agent_db_send(database->db, &sweep_webhooks, params, err,
                         database->scratch);
}

static void receive_sweep(void *part, const agent_db_result_t *result)
{
    agent_webhook_t *webhook = part;
    const char *count = agent_db_rows(result) == 1
        ? agent_db_value(result, 0, 0)
        : NULL;

    if (count != NULL && strcmp(count, "0") != 0) {
        webhook->sweep_at = webhook->context->now;
    }
}

static void fail_sweep(void *part, agent_failure_t failure)
{
    agent_webhook_t *webhook = part;

    webhook->sweep_at = agent_database_after(webhook->context, SWEEP_RETRY);
}

const agent_operation_t agent_webhook_sweep_operation = {
    "sweep_webhooks", due_sweep, send_sweep, receive_sweep, fail_sweep};
