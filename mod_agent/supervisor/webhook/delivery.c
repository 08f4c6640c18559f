/* SPDX-License-Identifier: Apache-2.0 */
/* The table of deliveries; see delivery.h. */
#include "delivery.h"

#include <string.h>

#define DEFAULT_TIMEOUT apr_time_from_sec(10)

static bool is_first_of_deployment(const agent_pool_config_t *pools, int number)
{
    for (int i = 0; i < number; i++) {
        if (strcmp(pools[i].deployment, pools[number].deployment) == 0) {
            return false;
        }
    }
    return true;
}

static int count_deployments(const agent_supervisor_config_t *config)
{
    int count = 0;

    for (int i = 0; i < config->pool_count; i++) {
        count += is_first_of_deployment(config->pools, i);
    }
    return count;
}

/* Also for a single one: webhooks of deployments whose runners are on other
 * hosts are delivered here too. One slot at least, while one is left for
 * those. */
static void set_guarantees(agent_delivery_table_t *table)
{
    int count = count_deployments(table->context->config);

    if (count == 0) {
        return;
    }
    table->guaranteed = AGENT_WEBHOOK_SLOTS / 2 / count;
    if (table->guaranteed == 0 && count < AGENT_WEBHOOK_SLOTS) {
        table->guaranteed = 1;
    }
    table->guaranteed_bytes = AGENT_WEBHOOK_MAX_BYTES / 2 / (apr_size_t)count;
}

void agent_delivery_init(agent_delivery_table_t *table,
                         agent_context_t *context, agent_poll_t *poll)
{
    table->context = context;
    table->poll = poll;
    set_guarantees(table);
    APR_RING_INIT(&table->sending, agent_delivery_t, link);
    APR_RING_INIT(&table->ended, agent_delivery_t, link);
    for (int i = 0; i < AGENT_WEBHOOK_SOCKETS; i++) {
        table->sockets[i].fd = -1;
    }
    table->timer_at = AGENT_CLOCK_NEVER;
}

bool agent_delivery_is_idle(const agent_delivery_table_t *table)
{
    return table->count == 0;
}

apr_interval_time_t agent_delivery_timeout(const agent_delivery_table_t *table)
{
    apr_interval_time_t timeout = table->context->config->webhooks.timeout;

    return timeout > 0 ? timeout : DEFAULT_TIMEOUT;
}

agent_delivery_t *agent_delivery_find(agent_delivery_ring_t *ring,
                                      const char *run_id,
                                      const char *deployment_id)
{
    agent_delivery_t *delivery;

    AGENT_RING_EACH(delivery, ring, agent_delivery_t, link)
    {
        if (strcmp(delivery->run_id, run_id) == 0
            && (deployment_id == NULL
                || strcmp(delivery->deployment_id, deployment_id) == 0)) {
            return delivery;
        }
    }
    return NULL;
}

void agent_delivery_add(agent_delivery_t *delivery)
{
    agent_delivery_table_t *table = delivery->table;

    APR_RING_INSERT_TAIL(&table->sending, delivery, agent_delivery_t, link);
    table->count++;
    table->bytes += delivery->length;
}

void agent_delivery_end(agent_delivery_t *delivery,
                        const agent_webhook_response_t *response)
{
    delivery->outcome = agent_webhook_outcome(response, delivery->pool);
    APR_RING_REMOVE(delivery, link);
    APR_RING_INSERT_TAIL(&delivery->table->ended, delivery, agent_delivery_t,
                         link);
}

void agent_delivery_disconnect(agent_delivery_t *delivery)
{
    if (delivery->easy != NULL) {
        curl_multi_remove_handle(delivery->table->multi, delivery->easy);
        curl_easy_cleanup(delivery->easy);
        curl_slist_free_all(delivery->headers);
        delivery->easy = NULL;
    }
}

void agent_delivery_free(agent_delivery_t *delivery)
{
    agent_delivery_table_t *table = delivery->table;

    agent_delivery_disconnect(delivery);
    APR_RING_REMOVE(delivery, link);
    table->count--;
    table->bytes -= delivery->length;
    apr_pool_destroy(delivery->pool);
}

void agent_delivery_free_all(agent_delivery_ring_t *ring)
{
    while (!APR_RING_EMPTY(ring, agent_delivery_t, link)) {
        agent_delivery_free(APR_RING_FIRST(ring));
    }
}

void agent_delivery_abort(agent_delivery_table_t *table)
{
    agent_delivery_free_all(&table->sending);
}
