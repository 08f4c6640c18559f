/* SPDX-License-Identifier: Apache-2.0 */
/* The directives of webhooks; see directives.h. */
#include "config.h"
#include "directives.h"
#include "file.h"
#include "location.h"
#include "value.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include <apr_encode.h>
#include <apr_env.h>
#include <apr_strings.h>

#include "../core/header.h"
#include "../private.h"

#define MAX_SECRET_FILE 4096
/* Standard Webhooks: a secret of 24 to 64 bytes, in base64. */
#define SECRET_PREFIX "whsec_"
#define SECRET_LEAST  24
#define SECRET_MOST   64

/* Of all hosts: each is compared with all others at the start. */
#define HEADERS_MAX 256

/* The start of a variable in a header's value. */
#define VARIABLE "%{osenv:"

/* Returns the secret of the directive's host, which exists already if the
 * directive is repeated. */
static agent_webhook_secret_t *get_secret(agent_server_config_t *config,
                                          const server_rec *server)
{
    agent_webhook_secret_t *secret;

    for (int i = 0; i < config->webhook_secrets->nelts; i++) {
        secret = &APR_ARRAY_IDX(config->webhook_secrets, i,
                                agent_webhook_secret_t);
        if (secret->server == server) {
            return secret;
        }
    }
    secret = apr_array_push(config->webhook_secrets);
    secret->server = server;
    return secret;
}

/* Erases text. False: it is not a secret. */
static bool read_secret(agent_webhook_secret_t *secret, char *text,
                        apr_pool_t *pool)
{
    const char *encoded = text;

    text[strcspn(text, "\r\n")] = '\0';
    if (strncmp(text, SECRET_PREFIX, strlen(SECRET_PREFIX)) == 0) {
        encoded += strlen(SECRET_PREFIX);
    }
    secret->key = (unsigned char *)apr_pdecode_base64_binary(
        pool, encoded, APR_ENCODE_STRING, APR_ENCODE_NONE, &secret->length);
    explicit_bzero(text, strlen(text));
    return secret->key != NULL && secret->length >= SECRET_LEAST
        && secret->length <= SECRET_MOST;
}

const char *agent_directive_webhook_secret(cmd_parms *cmd, void *dir,
                                           const char *arg)
{
    agent_server_config_t *config = agent_config_server(cmd->server);
    const char *problem = ap_check_cmd_context(cmd, NOT_IN_DIR_CONTEXT);
    agent_webhook_secret_t secret = {.server = cmd->server};
    char *text;

    if (problem != NULL) {
        return problem;
    }
    text = agent_file_read(&problem, cmd, arg, MAX_SECRET_FILE);
    if (text == NULL) {
        return problem;
    }
    if (!read_secret(&secret, text, cmd->pool)) {
        /* The given text may be a secret: it is not repeated. */
        return apr_psprintf(cmd->pool,
                            "AgentWebhookSecretFile: expected " SECRET_PREFIX
                            " and %d to %d bytes in base64 in the first line, "
                            "got another text in '%s'",
                            SECRET_LEAST, SECRET_MOST, arg);
    }
    agent_file_erase_with_pool(secret.key, secret.length, cmd->pool);
    *get_secret(config, cmd->server) = secret;
    return NULL;
}

/* Returns the value of a variable of httpd's environment, and sets what follows
 * its name; NULL: it is not set. */
static const char *read_variable(const char **rest, const char *text,
                                 apr_pool_t *pool)
{
    size_t length = strspn(text,
                           "abcdefghijklmnopqrstuvwxyz"
                           "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    char *value = NULL;

    *rest = text + length + 1;
    return text[length] == '}'
            && apr_env_get(&value, apr_pstrmemdup(pool, text, length), pool)
                == APR_SUCCESS
        ? value
        : NULL;
}

/*
 * Returns a text with the values of its %{osenv:NAME}, as an expression of
 * httpd has it, in pool; NULL: one is not set, or they are too long. httpd
 * itself replaces ${NAME} before it reads the line's quotes and backslashes,
 * so that a secret with one of these would be read as another text.
 */
static const char *resolve_variables(const char *text, apr_pool_t *pool)
{
    const char *value = "";

    /* httpd leaves ${NAME} as it is if it does not know the variable. */
    if (strstr(text, "${") != NULL) {
        return NULL;
    }
    for (const char *next; (next = strstr(text, VARIABLE)) != NULL;) {
        const char *before = apr_pstrmemdup(pool, text, (size_t)(next - text));
        const char *variable = read_variable(&text, next + strlen(VARIABLE),
                                             pool);

        /* Bounded: stops after AGENT_HEADER_VALUE_MAX bytes, or at a variable
         * that is not set. */
        if (variable == NULL || strlen(value) > AGENT_HEADER_VALUE_MAX) {
            return NULL;
        }
        value = apr_pstrcat(pool, value, before, variable, NULL);
    }
    return apr_pstrcat(pool, value, text, NULL);
}

const char *agent_directive_webhook_header(cmd_parms *cmd, void *dir,
                                           const char *name, const char *value)
{
    agent_server_config_t *config = agent_config_server(cmd->server);
    const char *problem = ap_check_cmd_context(cmd, NOT_IN_DIR_CONTEXT);
    agent_webhook_header_t *header;

    if (problem != NULL) {
        return problem;
    }
    if (!agent_header_is_addable(name)) {
        return apr_psprintf(cmd->pool,
                            "AgentWebhookHeader: expected the name of a "
                            "header that deliveries do not have, of at most "
                            "%d letters, digits, - and _, got '%s'",
                            AGENT_HEADER_NAME_MAX, name);
    }
    value = resolve_variables(value, cmd->pool);
    if (value == NULL || !agent_header_is_value(value)) {
        /* It may be a secret: it is not repeated. */
        return apr_psprintf(cmd->pool,
                            "AgentWebhookHeader: expected 1 to %d bytes of one "
                            "line, whose variables httpd knows, as the value "
                            "of '%s'",
                            AGENT_HEADER_VALUE_MAX, name);
    }
    header = apr_array_push(config->webhook_headers);
    header->server = cmd->server;
    header->name = name;
    header->value = value;
    return NULL;
}

/* The name of the deployment that a host's secret and headers are for; "" for
 * all without one. */
static const char *name_deployment(const server_rec *server)
{
    return server->is_virtual ? agent_location_host_deployment(server) : "";
}

static bool is_same(const agent_webhook_secret_t *a,
                    const agent_webhook_secret_t *b)
{
    return a->length == b->length && memcmp(a->key, b->key, a->length) == 0;
}

static const char *check_secrets(const agent_server_config_t *config,
                                 apr_pool_t *pool)
{
    const agent_webhook_secret_t *secrets = (const agent_webhook_secret_t *)
                                                config->webhook_secrets->elts;

    for (int i = 0; i < config->webhook_secrets->nelts; i++) {
        const char *name = name_deployment(secrets[i].server);

        for (int k = 0; k < i; k++) {
            if (strcmp(name, name_deployment(secrets[k].server)) == 0
                && !is_same(&secrets[i], &secrets[k])) {
                /* Bounded: it returns with the first message. */
                return apr_psprintf(pool,
                                    "AgentWebhookSecretFile: expected the same "
                                    "secret in all hosts of the deployment "
                                    "'%s', got two",
                                    name);
            }
        }
    }
    return NULL;
}

static const char *check_headers(const agent_server_config_t *config,
                                 apr_pool_t *pool)
{
    const agent_webhook_header_t *headers = (const agent_webhook_header_t *)
                                                config->webhook_headers->elts;

    if (config->webhook_headers->nelts > HEADERS_MAX) {
        return apr_psprintf(pool,
                            "AgentWebhookHeader: expected at most %d in all "
                            "hosts, got %d",
                            HEADERS_MAX, config->webhook_headers->nelts);
    }
    for (int i = 0; i < config->webhook_headers->nelts; i++) {
        const char *name = name_deployment(headers[i].server);

        for (int k = 0; k < i; k++) {
            if (strcasecmp(headers[i].name, headers[k].name) == 0
                && strcmp(name, name_deployment(headers[k].server)) == 0
                && strcmp(headers[i].value, headers[k].value) != 0) {
                /* Bounded: it returns with the first message. */
                return apr_psprintf(pool,
                                    "AgentWebhookHeader: expected one value of "
                                    "'%s' in all hosts of the deployment '%s', "
                                    "got two",
                                    headers[i].name, name);
            }
        }
    }
    return NULL;
}

const char *agent_directive_check_webhooks(const agent_server_config_t *config,
                                           apr_pool_t *pool)
{
    const char *problem = check_secrets(config, pool);

    return problem != NULL ? problem : check_headers(config, pool);
}

const char *agent_directive_webhook_allow(cmd_parms *cmd, void *dir,
                                          const char *arg)
{
    const char *problem;
    agent_server_config_t *config = agent_value_server(&problem, cmd);

    if (config != NULL && !agent_egress_allow(config->webhook_egress, arg)) {
        problem = apr_psprintf(cmd->pool,
                               "AgentWebhookAllow: expected %s, or a host "
                               "name, got '%s'",
                               agent_egress_expected(arg, true), arg);
    }
    return problem;
}

const char *agent_directive_webhook_deny(cmd_parms *cmd, void *dir,
                                         const char *arg)
{
    const char *problem;
    agent_server_config_t *config = agent_value_server(&problem, cmd);

    if (config != NULL && !agent_egress_deny(config->webhook_egress, arg)) {
        problem = apr_psprintf(cmd->pool,
                               "AgentWebhookDeny: expected %s, got '%s'",
                               agent_egress_expected(arg, false), arg);
    }
    return problem;
}

const char *agent_directive_webhook_ports(cmd_parms *cmd, void *dir,
                                          const char *arg)
{
    const char *problem;
    agent_server_config_t *config = agent_value_server(&problem, cmd);

    if (config != NULL
        && !agent_egress_allow_ports(config->webhook_egress, arg)) {
        problem = apr_psprintf(cmd->pool,
                               "AgentWebhookPorts: expected ports from 1 to "
                               "65535, like 8080 or 8000-8999, got '%s'",
                               arg);
    }
    return problem;
}

const char *agent_directive_webhook_origin(cmd_parms *cmd, void *dir,
                                           const char *arg)
{
    const char *problem;
    agent_server_config_t *config = agent_value_server(&problem, cmd);

    if (config != NULL
        && !agent_egress_allow_origin(config->webhook_egress, arg)) {
        problem = apr_psprintf(cmd->pool,
                               "AgentWebhookOrigin: expected https, or origins "
                               "like https://hooks.example.com or "
                               "https://*.example.com:*, got '%s'",
                               arg);
    }
    return problem;
}
