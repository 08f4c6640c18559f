/* SPDX-License-Identifier: Apache-2.0 */
/* Connects, authenticates, loads the script, and sends commands. */
#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../counter/clock.h"
#include "../protocol/period.h"

/* From the second failure on: 1 s to 32 s. */
#define PAUSE_MS     1000ULL
#define FAILURES_MAX 6U
/* Without a failure for so long, it has none. */
#define FORGET_MS 60000U

static const struct timeval call_timeout = {
    .tv_sec = 0, .tv_usec = RLR_PERIOD_CALL_MS * 1000};

void rlr_node_init(rlr_node_t *node, const rlr_connection_config_t *config,
                   const rlr_server_address_t *at)
{
    memset(node, 0, sizeof(*node));
    node->config = config;
    node->at = *at;
    apr_cpystrn(node->error, "closed", sizeof(node->error));
}

static void end_probe(rlr_node_t *node)
{
    if (node->probe != NULL) {
        redisFree(node->probe);
        node->probe = NULL;
    }
}

bool rlr_node_is_back(rlr_node_t *node)
{
    void *reply = NULL;
    int done = 0;
    bool is_back;

    if (!node->has_failed) {
        return true;
    }
    if (node->probe == NULL) {
        node->probe = redisConnectNonBlock(node->at.host, node->at.port);
        if (node->probe == NULL || node->probe->err != 0) {
            end_probe(node);
            return false;
        }
        fcntl(node->probe->fd, F_SETFD, FD_CLOEXEC);
        redisAppendCommand(node->probe, "PING");
    }
    if (redisBufferWrite(node->probe, &done) != REDIS_OK
        || redisBufferRead(node->probe) != REDIS_OK
        || redisGetReplyFromReader(node->probe, &reply) != REDIS_OK) {
        /* A server with TLS answers otherwise, or closes the connection. */
        is_back = node->probe->err != REDIS_ERR_IO;
        end_probe(node);
        return is_back;
    }
    if (reply == NULL) {
        return false;
    }
    freeReplyObject(reply);
    end_probe(node);
    return true;
}

void rlr_node_close(rlr_node_t *node)
{
    end_probe(node);
    if (node->context != NULL) {
        redisFree(node->context);
        node->context = NULL;
        node->is_ready = false;
        node->generation++;
    }
}

/* A server that fails again and again, and answers in between, holds up the
 * others each time that it is opened: the pause doubles, and begins with none.
 */
static void count_failure(rlr_node_t *node)
{
    rlr_time_t now = rlr_clock_now();

    if (now.floor_ms > node->failed_ms + FORGET_MS) {
        node->failures = 0;
    }
    node->has_failed = true;
    node->failed_ms = now.floor_ms;
    node->pause_until_ms = now.floor_ms
        + (node->failures > 0 ? PAUSE_MS << (node->failures - 1) : 0);
    node->failures += node->failures < FAILURES_MAX;
}

/* Whether the connection has an error since the other end has closed it. */
static bool was_closed(const redisContext *context)
{
    return context->err == REDIS_ERR_EOF
        || (context->err == REDIS_ERR_IO
            && (errno == ECONNRESET || errno == EPIPE));
}

/* Keeps the text, which must not contain a secret, and closes. A connection
 * that has ended says nothing of the server: only if it cannot be opened again
 * that has failed. */
static const char *fail(rlr_node_t *node, const char *what, const char *text)
{
    node->is_lost = node->is_ready && was_closed(node->context);
    if (node->context != NULL && node->context->err != 0 && !node->is_lost) {
        count_failure(node);
    }
    snprintf(node->error, sizeof(node->error), "%s: %s", what, text);
    rlr_node_close(node);
    return node->error;
}

void rlr_node_reject(rlr_node_t *node, const char *error)
{
    fail(node, "receive", error);
}

/* Ends the text where the other one begins in it. */
static void cut(char *text, const char *from)
{
    char *found = strstr(text, from);

    if (found != NULL) {
        *found = '\0';
    }
}

/* Sends one command of some words. *text has room for the text of the reply, or
 * is NULL. */
static const char *run(rlr_node_t *node, const char **words, int count,
                       char *text, size_t size)
{
    redisReply *reply = redisCommandArgv(node->context, count, words, NULL);
    const redisReply *first = reply;
    const char *error = NULL;

    if (reply == NULL) {
        return fail(node, words[0], node->context->errstr);
    }
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0) {
        first = reply->element[0];
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        /* A server that does not know SCRIPT repeats the script. */
        cut(reply->str, ", with args");
        error = fail(node, words[0], reply->str);
    }
    else if (text != NULL) {
        apr_cpystrn(text, first->type == REDIS_REPLY_STRING ? first->str : "",
                    size);
    }
    freeReplyObject(reply);
    return error;
}

static const char *authenticate(rlr_node_t *node)
{
    const rlr_connection_config_t *config = node->config;
    const char *words[3] = {"AUTH"};
    int count = 1;

    if (config->password == NULL) {
        return NULL;
    }
    if (config->user != NULL) {
        words[count++] = config->user;
    }
    words[count++] = config->password;
    return run(node, words, count, NULL, 0);
}

/* The script needs commands of Redis 6.2; Valkey reports a redis_version of 7.2
 * or later. */
static const char *check_version(rlr_node_t *node)
{
    static const char name[] = "redis_version:";
    const char *words[] = {"INFO", "server"};
    char text[4096];
    const char *error = run(node, words, 2, text, sizeof(text));
    char *version;
    char *end;
    long major;
    long minor;

    if (error != NULL) {
        return error;
    }
    version = strstr(text, name);
    version = version != NULL ? version + strlen(name) : text + strlen(text);
    version[strcspn(version, "\r\n")] = '\0';
    major = strtol(version, &end, 10);
    minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    return major < 6 || (major == 6 && minor < 2)
        ? fail(node, "expected Redis 6.2 or later, got", version)
        : NULL;
}

/* Sentinel may name a server that has not changed its role yet. */
static const char *check_role(rlr_node_t *node)
{
    const char *words[] = {"ROLE"};
    char role[16];
    const char *error = run(node, words, 1, role, sizeof(role));

    return error == NULL && strcmp(role, "master") != 0
        ? fail(node, "expected a primary, got", role)
        : error;
}

static const char *prepare(rlr_node_t *node)
{
    const rlr_address_t *address = &node->config->address;
    char database[16];
    const char *select[] = {"SELECT", database};
    const char *load[] = {"SCRIPT", "LOAD", rlr_wire_script};
    const char *error = authenticate(node);

    snprintf(database, sizeof(database), "%d", address->database);
    if (error == NULL && address->database != 0) {
        error = run(node, select, 2, NULL, 0);
    }
    if (error == NULL && address->kind == RLR_ADDRESS_SENTINEL) {
        error = check_role(node);
    }
    if (error == NULL) {
        error = check_version(node);
    }
    if (error == NULL) {
        error = run(node, load, 3, node->sha, sizeof(node->sha));
    }
    node->has_failed &= error != NULL;
    node->is_ready = error == NULL;
    return error;
}

const char *rlr_node_open(rlr_node_t *node)
{
    const rlr_connection_config_t *config = node->config;
    const char *error;

    if (node->context != NULL) {
        return NULL;
    }
    node->context = redisConnectWithTimeout(node->at.host, node->at.port,
                                            call_timeout);
    if (node->context == NULL) {
        return "out of memory";
    }
    if (node->context->err != 0) {
        return fail(node, "connect", node->context->errstr);
    }
    /* hiredis has no flag for it. */
    fcntl(node->context->fd, F_SETFD, FD_CLOEXEC);
    /* A firewall may forget a connection that is idle. */
    if (redisSetTimeout(node->context, call_timeout) != REDIS_OK
        || redisEnableKeepAlive(node->context) != REDIS_OK) {
        return fail(node, "connect", node->context->errstr);
    }
    if (config->address.has_tls) {
        error = rlr_tls_start(config->tls, node->context, node->at.host);
        if (error != NULL) {
            return fail(node, "TLS", error);
        }
    }
    return prepare(node);
}

bool rlr_node_has_ended(const rlr_node_t *node)
{
    struct pollfd wanted = {node->context->fd, POLLRDHUP, 0};

    /* Not by reading: with TLS there may be something to read that is none of
     * the store's. */
    return poll(&wanted, 1, 0) > 0;
}

void rlr_node_add(rlr_node_t *node, const rlr_wire_command_t *command)
{
    redisAppendCommandArgv(node->context, command->count, command->texts,
                           command->lengths);
}

void rlr_node_add_words(rlr_node_t *node, const char *const *words, int count)
{
    /* hiredis does not change them. */
    redisAppendCommandArgv(node->context, count, (const char **)words, NULL);
}

const char *rlr_node_flush(rlr_node_t *node)
{
    int done = 0;

    while (node->context != NULL && !done) {
        if (redisBufferWrite(node->context, &done) != REDIS_OK) {
            return fail(node, "send", node->context->errstr);
        }
    }
    return NULL;
}

const char *rlr_node_read(rlr_node_t *node)
{
    return redisBufferRead(node->context) == REDIS_OK
        ? NULL
        : fail(node, "receive", node->context->errstr);
}

const char *rlr_node_next(rlr_node_t *node, redisReply **reply)
{
    void *received = NULL;

    *reply = NULL;
    if (node->context == NULL) {
        return node->error;
    }
    if (redisGetReplyFromReader(node->context, &received) != REDIS_OK) {
        return fail(node, "receive", node->context->errstr);
    }
    *reply = received;
    return NULL;
}

void rlr_node_give_up(rlr_node_t *node)
{
    count_failure(node);
    fail(node, "receive", "Resource temporarily unavailable");
}

const char *rlr_node_receive(rlr_node_t *node, redisReply **reply)
{
    void *received = NULL;

    *reply = NULL;
    if (redisGetReply(node->context, &received) != REDIS_OK) {
        return fail(node, "receive", node->context->errstr);
    }
    *reply = received;
    return NULL;
}
