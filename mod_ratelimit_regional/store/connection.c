/* SPDX-License-Identifier: Apache-2.0 */
/* Connects, authenticates, loads the script, and sends calls. */
#include "connection.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>
#include <hiredis/hiredis.h>

#include "../region/period.h"

struct rlr_store_connection_t {
    const rlr_connection_config_t *config;
    redisContext *context; /* NULL: closed */
    char sha[41];
    char error[256];
};

static const struct timeval patience = {.tv_sec = 0,
                                        .tv_usec = RLR_PERIOD_CALL_MS * 1000};

void rlr_connection_close(rlr_store_connection_t *connection)
{
    if (connection->context != NULL) {
        redisFree(connection->context);
        connection->context = NULL;
    }
}

static apr_status_t close_with_pool(void *connection)
{
    rlr_connection_close(connection);
    return APR_SUCCESS;
}

rlr_store_connection_t *rlr_connection_make(
    const rlr_connection_config_t *config, apr_pool_t *pool)
{
    rlr_store_connection_t *connection = apr_pcalloc(pool, sizeof(*connection));

    connection->config = config;
    apr_pool_cleanup_register(pool, connection, close_with_pool,
                              apr_pool_cleanup_null);
    return connection;
}

/* Keeps the text, which must not contain a secret, and closes. */
static const char *fail(rlr_store_connection_t *connection, const char *what,
                        const char *text)
{
    snprintf(connection->error, sizeof(connection->error), "%s: %s", what,
             text);
    rlr_connection_close(connection);
    return connection->error;
}

/* Sends one command of two or three words. *out has room for the text of the
 * reply, or is NULL. */
static const char *run(rlr_store_connection_t *connection, const char *what,
                       const char **words, int count, char *out)
{
    redisReply *reply = redisCommandArgv(connection->context, count, words,
                                         NULL);
    const char *error = NULL;

    if (reply == NULL) {
        return fail(connection, what, connection->context->errstr);
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        error = fail(connection, what, reply->str);
    }
    else if (out != NULL) {
        apr_cpystrn(out, reply->type == REDIS_REPLY_STRING ? reply->str : "",
                    sizeof(connection->sha));
    }
    freeReplyObject(reply);
    return error;
}

/* The script needs commands of Redis 6.2; Valkey reports a redis_version of 7.2
 * or later. */
static const char *check_version(rlr_store_connection_t *connection)
{
    static const char name[] = "redis_version:";
    const char *words[] = {"INFO", "server"};
    redisReply *reply = redisCommandArgv(connection->context, 2, words, NULL);
    const char *version;
    const char *error = NULL;
    char got[32];
    char *end;

    if (reply == NULL) {
        return fail(connection, "INFO", connection->context->errstr);
    }
    version = reply->str != NULL ? strstr(reply->str, name) : NULL;
    version = version != NULL ? version + strlen(name) : "";
    apr_cpystrn(got, version, sizeof(got));
    got[strcspn(got, "\r\n")] = '\0';
    if (reply->type == REDIS_REPLY_ERROR) {
        error = fail(connection, "INFO", reply->str);
    }
    else {
        long major = strtol(got, &end, 10);
        long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;

        if (major < 6 || (major == 6 && minor < 2)) {
            error = fail(connection, "expected Redis 6.2 or later, got", got);
        }
    }
    freeReplyObject(reply);
    return error;
}

static const char *prepare(rlr_store_connection_t *connection)
{
    const rlr_connection_config_t *config = connection->config;
    const char *auth[] = {"AUTH", config->password};
    char database[16];
    const char *select[] = {"SELECT", database};
    const char *load[] = {"SCRIPT", "LOAD", rlr_wire_script};
    const char *error = NULL;

    snprintf(database, sizeof(database), "%d", config->address.database);
    if (config->password != NULL) {
        error = run(connection, "AUTH", auth, 2, NULL);
    }
    if (error == NULL && config->address.database != 0) {
        error = run(connection, "SELECT", select, 2, NULL);
    }
    if (error == NULL) {
        error = check_version(connection);
    }
    return error != NULL
        ? error
        : run(connection, "SCRIPT LOAD", load, 3, connection->sha);
}

const char *rlr_connection_open(rlr_store_connection_t *connection)
{
    const rlr_address_t *address = &connection->config->address;

    if (connection->context != NULL) {
        return NULL;
    }
    connection->context = redisConnectWithTimeout(address->host, address->port,
                                                  patience);
    if (connection->context == NULL) {
        return "out of memory";
    }
    if (connection->context->err != 0) {
        return fail(connection, "connect", connection->context->errstr);
    }
    /* hiredis has no flag for it. */
    fcntl(connection->context->fd, F_SETFD, FD_CLOEXEC);
    if (redisSetTimeout(connection->context, patience) != REDIS_OK) {
        return fail(connection, "connect", connection->context->errstr);
    }
    return prepare(connection);
}

void rlr_connection_add(rlr_store_connection_t *connection,
                        const rlr_store_call_t *call, uint32_t partition,
                        apr_pool_t *scratch)
{
    rlr_wire_command_t command;

    rlr_wire_encode(&command, call, partition, connection->sha, scratch);
    redisAppendCommandArgv(connection->context, command.count, command.texts,
                           command.lengths);
}

const char *rlr_connection_flush(rlr_store_connection_t *connection)
{
    int done = 0;

    while (connection->context != NULL && !done) {
        if (redisBufferWrite(connection->context, &done) != REDIS_OK) {
            return fail(connection, "send", connection->context->errstr);
        }
    }
    return NULL;
}

const char *rlr_connection_receive(rlr_store_connection_t *connection,
                                   rlr_store_reply_t *reply,
                                   uint32_t item_count)
{
    void *received = NULL;
    const char *error;

    reply->status = RLR_STORE_FAILED;
    if (connection->context == NULL) {
        return "closed";
    }
    if (redisGetReply(connection->context, &received) != REDIS_OK) {
        return fail(connection, "receive", connection->context->errstr);
    }
    rlr_wire_decode(reply, item_count, received, &error);
    if (error != NULL) {
        snprintf(connection->error, sizeof(connection->error), "script: %s",
                 error);
        error = connection->error;
    }
    freeReplyObject(received);
    /* Another connection loads the script again. */
    if (error != NULL && strstr(error, "NOSCRIPT") != NULL) {
        rlr_connection_close(connection);
    }
    return error;
}
