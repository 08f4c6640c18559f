/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP request of a delivery; see webhook_request.h. */
#include "webhook_request.h"

#include <string.h>

#include <apr_strings.h>
#include <arpa/inet.h>
#include <netinet/in.h>

#include "../../core/address.h"
#include "../base/order.h"
#include "sign.h"

/* Head and body of a response together; beyond it the connection is closed. */
#define RESPONSE_BYTES 65536

/* This host's addresses are read again after this time. */
#define HOST_MAX_AGE apr_time_from_sec(1)

/* ---- permitted addresses ---- */

static const char *print_address(const struct sockaddr *address,
                                 apr_pool_t *pool)
{
    char text[INET6_ADDRSTRLEN] = "?";
    const void *bytes = address->sa_family == AF_INET6
        ? (const void *)&((const struct sockaddr_in6 *)(const void *)address)
              ->sin6_addr
        : (const void *)&((const struct sockaddr_in *)(const void *)address)
              ->sin_addr;

    inet_ntop(address->sa_family, bytes, text, sizeof(text));
    return apr_pstrdup(pool, text);
}

/* This host's addresses, which may change. Services on this host may trust
 * connections from them (`Require local`). */
static const apr_array_header_t *find_host_addresses(
    agent_delivery_table_t *table)
{
    if (table->host_pool == NULL) {
        apr_pool_create(&table->host_pool, table->context->pool);
    }
    else if (table->context->now - table->host_read_at < HOST_MAX_AGE) {
        return table->host_addresses;
    }
    apr_pool_clear(table->host_pool);
    table->host_addresses = agent_address_list_own(table->host_pool);
    table->host_read_at = table->context->now;
    return table->host_addresses;
}

/* The address is checked here because libcurl connects to it next; an earlier
 * check of the name may have resolved it to another one. */
static curl_socket_t open_socket(void *baton, curlsocktype purpose,
                                 struct curl_sockaddr *address)
{
    agent_delivery_t *delivery = baton;
    int fd;

    if (!agent_egress_permits(delivery->table->context->config->webhooks.egress,
                              find_host_addresses(delivery->table),
                              &delivery->target, &address->addr)) {
        delivery->denied = print_address(&address->addr, delivery->pool);
        return CURL_SOCKET_BAD;
    }
    delivery->has_permitted_address = true;
    fd = socket(address->family, address->socktype | SOCK_CLOEXEC,
                address->protocol);
    return fd >= 0 ? fd : CURL_SOCKET_BAD;
}

/* ---- the response ---- */

static size_t count_bytes(char *bytes, size_t size, size_t count, void *baton)
{
    agent_delivery_t *delivery = baton;

    delivery->response_bytes += size * count;
    return delivery->response_bytes <= RESPONSE_BYTES ? size * count : 0;
}

static const char *describe(const agent_delivery_t *delivery, CURLcode code)
{
    if (delivery->denied != NULL && !delivery->has_permitted_address) {
        return apr_psprintf(delivery->pool,
                            "refused: the address %s may not be called "
                            "(AgentWebhookAllow)",
                            delivery->denied);
    }
    if (code == CURLE_OPERATION_TIMEDOUT) {
        return "no answer in time";
    }
    return delivery->failure[0] != '\0' ? delivery->failure
                                        : curl_easy_strerror(code);
}

void agent_webhook_request_read(agent_webhook_response_t *response,
                                agent_delivery_t *delivery, CURLcode code)
{
    curl_off_t wait = 0;
    long status = 0;

    /* The status is valid even if the rest of the response was cut off or too
     * long. */
    curl_easy_getinfo(delivery->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(delivery->easy, CURLINFO_RETRY_AFTER, &wait);
    response->status = (int)status;
    response->failure = describe(delivery, code);
    response->retry_after = (int)AGENT_MIN(wait, (curl_off_t)APR_INT32_MAX);
}

/* ---- the request ---- */

static void add_header(agent_delivery_t *delivery, const char *name,
                       const char *value)
{
    const char *line = apr_pstrcat(delivery->pool, name, ":", value, NULL);
    struct curl_slist *longer = curl_slist_append(delivery->headers, line);

    if (longer != NULL) {
        delivery->headers = longer;
    }
}

static bool is_deployment(const char *one, const char *other)
{
    return one == NULL || other == NULL ? one == other
                                        : strcmp(one, other) == 0;
}

/* Those of AgentWebhookHeader. */
static void add_configured(agent_delivery_t *delivery)
{
    const agent_webhook_config_t *config = &delivery->table->context->config
                                                ->webhooks;

    for (int i = 0; i < config->header_count; i++) {
        const agent_webhook_header_text_t *header = &config->headers[i];

        if (is_deployment(header->deployment, delivery->deployment)) {
            /* Bounded: those of the configuration, once a delivery. */
            add_header(delivery, header->name,
                       apr_pstrcat(delivery->pool, " ", header->value, NULL));
        }
    }
}

static void set_headers(agent_delivery_t *delivery)
{
    apr_pool_t *pool = delivery->pool;
    const char *timestamp = apr_psprintf(pool, "%" APR_INT64_T_FMT,
                                         apr_time_sec(apr_time_now()));
    const agent_webhook_message_t message = {delivery->run_id, timestamp,
                                             delivery->body, delivery->length};

    /* Otherwise libcurl sends `Expect: 100-continue` before a large body, and
     * waits for the response. */
    add_header(delivery, "Expect", "");
    add_header(delivery, "Content-Type", " application/json");
    add_configured(delivery);
    add_header(delivery, "webhook-id",
               apr_pstrcat(pool, " ", delivery->run_id, NULL));
    add_header(delivery, "webhook-timestamp",
               apr_pstrcat(pool, " ", timestamp, NULL));
    if (delivery->key != NULL) {
        const char *signature = agent_webhook_sign(
            &message, delivery->key->bytes, delivery->key->length, pool);

        add_header(delivery, "webhook-signature",
                   apr_pstrcat(pool, " ", signature, NULL));
    }
    curl_easy_setopt(delivery->easy, CURLOPT_HTTPHEADER, delivery->headers);
}

static void set_safety(agent_delivery_t *delivery)
{
    CURL *easy = delivery->easy;

    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, delivery);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    /* The end of a delivery must not wait for name resolution, which may take
     * any time. */
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, count_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, delivery);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, count_bytes);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, delivery);
}

static void set_request(agent_delivery_t *delivery)
{
    const agent_webhook_config_t *config = &delivery->table->context->config
                                                ->webhooks;
    long timeout_ms = (long)apr_time_as_msec(
        agent_delivery_timeout(delivery->table));
    CURL *easy = delivery->easy;

    curl_easy_setopt(easy, CURLOPT_URL, delivery->url);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, delivery->body);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     (curl_off_t)delivery->length);
    curl_easy_setopt(easy, CURLOPT_USERAGENT,
                     config->user_agent ? config->user_agent : "mod_agent");
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, timeout_ms / 2);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, delivery->failure);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, delivery);
}

/* Needed although the URL was checked when the run was created: that was under
 * earlier rules, or those of another server. The attempt has then failed. */
const char *agent_webhook_request_check(agent_delivery_t *delivery)
{
    const char *expected = agent_egress_read_url(&delivery->target,
                                                 delivery->url, delivery->pool);

    if (expected == NULL) {
        expected = agent_egress_check(
            delivery->table->context->config->webhooks.egress,
            find_host_addresses(delivery->table), &delivery->target,
            delivery->pool);
    }
    return expected != NULL
        ? apr_pstrcat(delivery->pool, "refused: expected ", expected, NULL)
        : NULL;
}

bool agent_webhook_request_make(agent_delivery_t *delivery)
{
    delivery->easy = curl_easy_init();
    if (delivery->easy == NULL) {
        return false;
    }
    set_safety(delivery);
    set_request(delivery);
    set_headers(delivery);
    return true;
}
