/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to each Sentinel that never blocks. */
#include "sentinel.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../counter/clock.h"
#include "../protocol/period.h"

/* From one query to the next. */
#define ASK_MS 300U
/* An unanswered query ends the connection; and how long none is
 * opened. */
#define ANSWER_MS 1000U
#define RETRY_MS  1000U
/* How long an answer counts: less than RLR_PERIOD_TWO_STORES_MS by far. */
#define KNOWN_MS 10000U

/* A Sentinel. */
typedef struct watch_t {
    const rlr_server_address_t *at;
    redisContext *context; /* NULL: closed */
    bool is_sent;          /* all that is queued */
    bool is_asked;         /* the reply is awaited */
    bool is_authenticating;
    uint64_t asked_ms;
    uint64_t attempt_ms; /* when it may be opened again */
    uint64_t known_ms;   /* of the answer; 0: none */
    rlr_server_address_t primary;
} watch_t;

struct rlr_sentinel_t {
    const rlr_connection_config_t *config;
    watch_t watches[RLR_ADDRESS_SERVERS_MAX];
    char reason[384]; /* why the last of them gave no answer */
    char error[512];
};

static apr_status_t close_all(void *data)
{
    rlr_sentinel_t *sentinel = data;

    for (int i = 0; i < sentinel->config->address.count; i++) {
        if (sentinel->watches[i].context != NULL) {
            redisFree(sentinel->watches[i].context);
            sentinel->watches[i].context = NULL;
        }
    }
    return APR_SUCCESS;
}

rlr_sentinel_t *rlr_sentinel_make(const rlr_connection_config_t *config,
                                  apr_pool_t *pool)
{
    rlr_sentinel_t *sentinel = apr_pcalloc(pool, sizeof(*sentinel));

    sentinel->config = config;
    for (int i = 0; i < config->address.count; i++) {
        sentinel->watches[i].at = &config->address.servers[i];
    }
    apr_cpystrn(sentinel->reason, "they disagree", sizeof(sentinel->reason));
    apr_pool_cleanup_register(pool, sentinel, close_all, apr_pool_cleanup_null);
    return sentinel;
}

/* ---- One Sentinel ---- */

/* Keeps the text, which must not contain a secret, and closes. */
static void fail(rlr_sentinel_t *sentinel, watch_t *watch, const char *text)
{
    snprintf(sentinel->reason, sizeof(sentinel->reason), "%s:%d: %s",
             watch->at->host, watch->at->port, text);
    if (watch->context != NULL) {
        redisFree(watch->context);
        watch->context = NULL;
    }
    watch->is_asked = false;
    watch->attempt_ms = rlr_clock_now().floor_ms + RETRY_MS;
}

static void queue(watch_t *watch, const char **words, int count)
{
    redisAppendCommandArgv(watch->context, count, words, NULL);
    watch->is_sent = false;
}

/* A Sentinel without a password answers AUTH with an error, which means
 * nothing. */
static void authenticate(const rlr_connection_config_t *config, watch_t *watch)
{
    const char *words[] = {
        "AUTH", config->user != NULL ? config->user : config->password,
        config->password};

    watch->is_authenticating = config->password != NULL;
    if (watch->is_authenticating) {
        queue(watch, words, config->user != NULL ? 3 : 2);
    }
}

static bool open_watch(rlr_sentinel_t *sentinel, watch_t *watch)
{
    const rlr_connection_config_t *config = sentinel->config;
    const char *error;

    watch->context = redisConnectNonBlock(watch->at->host, watch->at->port);
    if (watch->context == NULL || watch->context->err != 0) {
        fail(sentinel, watch,
             watch->context != NULL ? watch->context->errstr : "no memory");
        return false;
    }
    fcntl(watch->context->fd, F_SETFD, FD_CLOEXEC);
    if (config->address.has_tls) {
        error = rlr_tls_start(config->tls, watch->context, watch->at->host);
        if (error != NULL) {
            fail(sentinel, watch, error);
            return false;
        }
    }
    authenticate(config, watch);
    return true;
}

static void ask(const rlr_connection_config_t *config, watch_t *watch,
                uint64_t now_ms)
{
    const char *words[] = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME",
                           config->address.primary};

    queue(watch, words, 3);
    watch->is_asked = true;
    watch->asked_ms = now_ms;
}

/* Takes an address as two texts. */
static void take_reply(rlr_sentinel_t *sentinel, watch_t *watch,
                       const redisReply *reply)
{
    long port;

    if (watch->is_authenticating) {
        watch->is_authenticating = false;
        return;
    }
    watch->is_asked = false;
    if (reply->type == REDIS_REPLY_ERROR || reply->type == REDIS_REPLY_NIL) {
        watch->known_ms = 0;
        fail(sentinel, watch,
             reply->type == REDIS_REPLY_ERROR
                 ? reply->str
                 : "the Sentinel knows no primary of this name");
        return;
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2
        || reply->element[0]->type != REDIS_REPLY_STRING
        || reply->element[1]->type != REDIS_REPLY_STRING) {
        fail(sentinel, watch, "not a Sentinel");
        return;
    }
    port = strtol(reply->element[1]->str, NULL, 10);
    if (port < 1 || port > 65535
        || reply->element[0]->len >= sizeof(watch->primary.host)) {
        fail(sentinel, watch, "no address of a primary");
        return;
    }
    apr_cpystrn(watch->primary.host, reply->element[0]->str,
                sizeof(watch->primary.host));
    watch->primary.port = (int)port;
    /* It was so when it was asked, or later. */
    watch->known_ms = watch->asked_ms;
}

static void exchange_bytes(rlr_sentinel_t *sentinel, watch_t *watch)
{
    int done = watch->is_sent;
    void *reply = NULL;

    if ((!done && redisBufferWrite(watch->context, &done) != REDIS_OK)
        || redisBufferRead(watch->context) != REDIS_OK) {
        fail(sentinel, watch, watch->context->errstr);
        return;
    }
    watch->is_sent = done != 0;
    do {
        if (redisGetReplyFromReader(watch->context, &reply) != REDIS_OK) {
            fail(sentinel, watch, watch->context->errstr);
            return;
        }
        if (reply != NULL) {
            take_reply(sentinel, watch, reply);
            freeReplyObject(reply);
        }
    } while (reply != NULL && watch->context != NULL);
}

static void step(rlr_sentinel_t *sentinel, watch_t *watch)
{
    uint64_t now_ms = rlr_clock_now().floor_ms;

    if (watch->context == NULL
        && (now_ms < watch->attempt_ms || !open_watch(sentinel, watch))) {
        return;
    }
    if (!watch->is_asked
        && (watch->asked_ms == 0 || now_ms >= watch->asked_ms + ASK_MS)) {
        ask(sentinel->config, watch, now_ms);
    }
    exchange_bytes(sentinel, watch);
    if (watch->is_asked && now_ms >= watch->asked_ms + ANSWER_MS) {
        fail(sentinel, watch, "no answer");
    }
}

/* ---- All of them ---- */

/* Returns the primary that more than half of them name, or NULL. */
static const rlr_server_address_t *count_answers(const rlr_sentinel_t *sentinel)
{
    int count = sentinel->config->address.count;
    uint64_t now_ms = rlr_clock_now().floor_ms;

    for (int i = 0; i < count; i++) {
        const watch_t *one = &sentinel->watches[i];
        int same = 0;

        for (int j = 0; j < count; j++) {
            const watch_t *other = &sentinel->watches[j];

            same += other->known_ms != 0 && now_ms < other->known_ms + KNOWN_MS
                && rlr_address_equal(&one->primary, &other->primary);
        }
        if (same > count / 2) {
            return &one->primary;
        }
    }
    return NULL;
}

static void wait_for_any(const rlr_sentinel_t *sentinel, uint64_t until_ms)
{
    struct pollfd events[RLR_ADDRESS_SERVERS_MAX];
    nfds_t count = 0;
    uint64_t now_ms = rlr_clock_now().floor_ms;

    for (int i = 0; i < sentinel->config->address.count; i++) {
        const watch_t *watch = &sentinel->watches[i];

        if (watch->context != NULL) {
            events[count].fd = watch->context->fd;
            events[count++].events = watch->is_sent ? POLLIN : POLLIN | POLLOUT;
        }
    }
    poll(events, count, until_ms > now_ms ? (int)(until_ms - now_ms) : 0);
}

const char *rlr_sentinel_find(rlr_sentinel_t *sentinel,
                              rlr_server_address_t *primary)
{
    uint64_t until_ms = rlr_clock_now().floor_ms + RLR_PERIOD_CALL_MS;
    const rlr_server_address_t *found;

    while (true) {
        for (int i = 0; i < sentinel->config->address.count; i++) {
            step(sentinel, &sentinel->watches[i]);
        }
        found = count_answers(sentinel);
        if (found != NULL || rlr_clock_now().floor_ms >= until_ms) {
            break;
        }
        wait_for_any(sentinel, until_ms);
    }
    if (found == NULL) {
        snprintf(sentinel->error, sizeof(sentinel->error),
                 "not more than half of the Sentinels name one primary: %s",
                 sentinel->reason);
        return sentinel->error;
    }
    *primary = *found;
    return NULL;
}
