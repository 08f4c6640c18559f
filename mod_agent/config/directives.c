/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses and stores the directives; defaults are config.c's. An error names
 * the directive, what was expected and what was given.
 */
#include "directives.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include <apr_file_io.h>
#include <apr_lib.h>
#include <apr_strings.h>

#include "../core/origin.h"
#include "../private.h"
#include "config.h"

/* What a size in bytes may be, and how an administrator writes that. */
typedef struct size_range_t {
    apr_int64_t low;
    apr_int64_t high;
    const char *low_text;
    const char *high_text;
    bool may_be_zero;
} size_range_t;

/* With less a runner does not start; more no machine has. */
static const size_range_t runner_memory_range = {
    APR_INT64_C(64) << 20, APR_INT64_C(1024) << 30, "64M", "1024G", true};

/* A run's start message must fit the 8 MiB line of the runner protocol. */
static const size_range_t max_body_range = {1 << 10, 7 << 20, "1K", "7M",
                                            false};

/* A numeric directive: where its value goes and what it may be. */
typedef struct number_t {
    size_t offset;
    apr_int64_t low;
    apr_int64_t high;
    /* Microseconds of one unit for a duration, 0 for an int. */
    apr_int64_t unit;
} number_t;

const char *agent_directive_number(apr_int64_t *out, cmd_parms *cmd,
                                   const char *arg, apr_int64_t low,
                                   apr_int64_t high)
{
    char *end;

    *out = apr_strtoi64(arg, &end, 10);
    if (*arg == '\0' || *end != '\0' || *out < low || *out > high) {
        return apr_psprintf(cmd->pool,
                            "%s: expected a whole number from "
                            "%" APR_INT64_T_FMT " to %" APR_INT64_T_FMT
                            ", got '%s'",
                            cmd->cmd->name, low, high, arg);
    }
    return NULL;
}

char *agent_directive_read_file(const char **problem, cmd_parms *cmd,
                                const char *path, apr_size_t limit)
{
    const char *full = ap_server_root_relative(cmd->temp_pool, path);
    char *text = apr_pcalloc(cmd->pool, limit + 1);
    apr_size_t length = limit;
    apr_file_t *file;
    apr_status_t rv = APR_EBADPATH;

    if (full != NULL) {
        rv = apr_file_open(&file, full, APR_READ, APR_FPROT_OS_DEFAULT,
                           cmd->temp_pool);
    }
    if (rv == APR_SUCCESS) {
        rv = apr_file_read_full(file, text, length, &length);
        apr_file_close(file);
        rv = rv == APR_EOF ? APR_SUCCESS : rv;
    }
    if (rv != APR_SUCCESS || length == limit) {
        *problem = apr_psprintf(
            cmd->pool,
            "%s: expected a readable file of at most %d bytes, "
            "got '%s' (%pm)",
            cmd->cmd->name, (int)limit - 1, path, &rv);
        return NULL;
    }
    return text;
}

typedef struct secret_t {
    void *bytes;
    apr_size_t length;
} secret_t;

static apr_status_t overwrite(void *baton)
{
    const secret_t *secret = baton;

    explicit_bzero(secret->bytes, secret->length);
    return APR_SUCCESS;
}

void agent_directive_forget(void *bytes, apr_size_t length, apr_pool_t *pool)
{
    secret_t *secret = apr_palloc(pool, sizeof(*secret));

    secret->bytes = bytes;
    secret->length = length;
    apr_pool_cleanup_register(pool, secret, overwrite, apr_pool_cleanup_null);
}

static const char *set_number(cmd_parms *cmd, void *dir, const char *arg)
{
    const number_t *number = cmd->info;
    char *config = (char *)agent_config_server(cmd->server);
    const char *problem = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    apr_int64_t value = 0;

    if (problem == NULL) {
        problem = agent_directive_number(&value, cmd, arg, number->low,
                                         number->high);
    }
    if (problem == NULL && number->unit != 0) {
        *(apr_interval_time_t *)(config + number->offset) = value
            * number->unit;
    }
    else if (problem == NULL) {
        *(int *)(config + number->offset) = (int)value;
    }
    return problem;
}

static const char *set_text(cmd_parms *cmd, void *dir, const char *arg)
{
    const size_t *offset = cmd->info;
    char *config = (char *)agent_config_server(cmd->server);
    const char *problem = ap_check_cmd_context(cmd, GLOBAL_ONLY);

    if (problem == NULL) {
        *(const char **)(config + *offset) = arg;
    }
    return problem;
}

static const char *set_flag(cmd_parms *cmd, void *dir, int on)
{
    const size_t *offset = cmd->info;
    char *config = (char *)agent_config_server(cmd->server);
    const char *problem = ap_check_cmd_context(cmd, GLOBAL_ONLY);

    if (problem == NULL) {
        *(int *)(config + *offset) = on;
    }
    return problem;
}

static const char *set_runner(cmd_parms *cmd, void *dir, const char *arg)
{
    const char *problem = ap_check_cmd_context(cmd, GLOBAL_ONLY);

    if (problem != NULL) {
        return problem;
    }
    agent_config_server(cmd->server)->runner = ap_server_root_relative(
        cmd->pool, arg);
    return NULL;
}

/* 1 for none, K, M or G in either case; 0 when it is something else. */
static apr_int64_t read_unit(const char *unit)
{
    static const char units[] = "kmg";
    apr_int64_t bytes = 1;

    if (*unit == '\0') {
        return 1;
    }
    for (const char *known = units; *known != '\0' && unit[1] == '\0';
         known++) {
        bytes *= 1024;
        if (apr_tolower(*unit) == *known) {
            return bytes;
        }
    }
    return 0;
}

/* Bytes from low to high, or 0 where none may be said. */
static const char *read_bytes(apr_int64_t *out, cmd_parms *cmd, const char *arg,
                              const size_range_t *range)
{
    char *end;
    apr_int64_t value = apr_strtoi64(arg, &end, 10);
    apr_int64_t unit = read_unit(end);

    if (end == arg || unit == 0 || value < 0 || value > range->high / unit
        || (value * unit < range->low && (value > 0 || !range->may_be_zero))) {
        return apr_psprintf(cmd->pool,
                            "%s: expected bytes from %s to %s, a number with "
                            "K, M or G after it or none%s, got '%s'",
                            cmd->cmd->name, range->low_text, range->high_text,
                            range->may_be_zero ? ", or 0" : "", arg);
    }
    *out = value * unit;
    return NULL;
}

static const char *set_runner_memory(cmd_parms *cmd, void *dir, const char *arg)
{
    const char *problem = ap_check_cmd_context(cmd, GLOBAL_ONLY);

    return problem != NULL
        ? problem
        : read_bytes(&agent_config_server(cmd->server)->runner_memory, cmd, arg,
                     &runner_memory_range);
}

static const char *set_feedback_url(cmd_parms *cmd, void *dir, const char *arg)
{
    const char *problem = ap_check_cmd_context(cmd, GLOBAL_ONLY);

    if (problem != NULL) {
        return problem;
    }
    if ((strncmp(arg, "http://", 7) != 0 && strncmp(arg, "https://", 8) != 0)
        || strstr(arg, "{run_id}") == NULL || strstr(arg, "{key}") == NULL) {
        return apr_psprintf(cmd->pool,
                            "AgentFeedbackURL: expected an http or https "
                            "address with {run_id} and {key} in it, got '%s'",
                            arg);
    }
    agent_config_server(cmd->server)->feedback_url = arg;
    return NULL;
}

static const char *set_prefix(cmd_parms *cmd, void *dir, const char *arg)
{
    agent_dir_config_t *config = dir;

    /* httpd itself refuses an empty one. */
    if (arg[0] != '/' || arg[strlen(arg) - 1] == '/') {
        return apr_psprintf(cmd->pool,
                            "AgentPrefix: expected a path that begins with / "
                            "and does not end with it, got '%s'",
                            arg);
    }
    config->prefix = arg;
    return NULL;
}

static const char *set_multitask(cmd_parms *cmd, void *dir, const char *arg)
{
    agent_dir_config_t *config = dir;

    if (strcmp(arg, "reject") != 0 && strcmp(arg, "enqueue") != 0
        && strcmp(arg, "interrupt") != 0 && strcmp(arg, "rollback") != 0) {
        return apr_psprintf(cmd->pool,
                            "AgentMultitaskDefault: expected reject, enqueue, "
                            "interrupt or rollback, got '%s'",
                            arg);
    }
    config->multitask_default = arg;
    return NULL;
}

static const char *set_max_body(cmd_parms *cmd, void *dir, const char *arg)
{
    agent_dir_config_t *config = dir;

    return read_bytes(&config->max_body, cmd, arg, &max_body_range);
}

/* * and None each stand alone: with others beside them they, or the others,
 * would say nothing. */
static bool is_mixture(const apr_array_header_t *origins, const char *arg)
{
    bool is_none = strcasecmp(arg, "none") == 0;

    if (origins == NULL) {
        return false;
    }
    if (apr_is_empty_array(origins)) {
        return !is_none;
    }
    return is_none || strcmp(arg, "*") == 0
        || APR_ARRAY_IDX(origins, 0, agent_origin_pattern_t).is_any;
}

static const char *allow_origin(cmd_parms *cmd, void *dir, const char *arg)
{
    agent_dir_config_t *config = dir;

    if (is_mixture(config->origins, arg)) {
        return apr_psprintf(cmd->pool,
                            "AgentAllowOrigin: expected * or None alone, got "
                            "'%s' beside another origin",
                            arg);
    }
    if (config->origins == NULL) {
        config->origins = apr_array_make(cmd->pool, 2,
                                         sizeof(agent_origin_pattern_t));
    }
    if (strcasecmp(arg, "none") == 0) {
        return NULL;
    }
    if (!agent_origin_read_pattern(apr_array_push(config->origins), arg)) {
        return apr_psprintf(cmd->pool,
                            "AgentAllowOrigin: expected origins like "
                            "https://app.example.com, http://localhost:* or "
                            "https://*.example.com, or * or None, got '%s'",
                            arg);
    }
    return NULL;
}

#define NUMBER(field, low, high, unit)                                         \
    {                                                                          \
        offsetof(agent_server_config_t, field), low, high, unit                \
    }
#define MSEC 1000
#define SEC  1000000

static const number_t runners = NUMBER(runners, 1, 64, 0);
static const number_t runner_slots = NUMBER(runner_slots, 1, 10000, 0);
static const number_t max_waiters = NUMBER(max_waiters, 1, AGENT_MAX_WAITERS,
                                           0);
static const number_t waiters_per_address = NUMBER(waiters_per_address, 0,
                                                   AGENT_MAX_WAITERS, 0);
static const number_t pool_size = NUMBER(pool_size, 1, 10000, 0);
static const number_t pool_wait = NUMBER(pool_wait, 0, 60000, MSEC);
static const number_t query_timeout = NUMBER(query_timeout, 10, 600000, MSEC);
static const number_t connect_timeout = NUMBER(connect_timeout, 10, 60000,
                                               MSEC);
static const number_t run_timeout = NUMBER(run_timeout, 1, 86400, SEC);
static const number_t drain_timeout = NUMBER(drain_timeout, 0, 3600, SEC);
static const number_t retention_days = NUMBER(retention_days, 1, 3650, 0);

static const number_t webhook_timeout = NUMBER(webhook_timeout, 1, 300, SEC);

static const size_t database = offsetof(agent_server_config_t, database);
static const size_t parking = offsetof(agent_server_config_t, parking);
static const size_t webhooks = offsetof(agent_server_config_t, webhooks);
static const size_t node = offsetof(agent_server_config_t, node);
static const size_t runner_user = offsetof(agent_server_config_t, runner_user);

/* command_rec's data pointer is not const, what it points to is. */
#define DATA(object) ((void *)&(object))

const command_rec agent_directives[] = {
    AP_INIT_TAKE1("AgentDatabase", set_text, DATA(database), RSRC_CONF,
                  "libpq connection string of the supervisor and of each "
                  "child's listener (default: DBDParams)"),
    AP_INIT_TAKE1("AgentNode", set_text, DATA(node), RSRC_CONF,
                  "name of this server among those that share the database "
                  "(default: the host name)"),
    AP_INIT_TAKE1("AgentDBPoolSize", set_number, DATA(pool_size), RSRC_CONF,
                  "connections one child uses at once (default: DBDMax)"),
    AP_INIT_TAKE1("AgentDBPoolWait", set_number, DATA(pool_wait), RSRC_CONF,
                  "milliseconds to wait for a connection (default: 1000)"),
    AP_INIT_TAKE1("AgentDBQueryTimeout", set_number, DATA(query_timeout),
                  RSRC_CONF,
                  "milliseconds a statement may take (default: 5000)"),
    AP_INIT_TAKE1("AgentDBConnectTimeout", set_number, DATA(connect_timeout),
                  RSRC_CONF,
                  "milliseconds to restore a connection (default: 1500)"),
    AP_INIT_TAKE1("AgentRunner", set_runner, NULL, RSRC_CONF,
                  "path of agent-runner (default: " AGENT_RUNNER_PATH ")"),
    AP_INIT_TAKE1("AgentRunnerUser", set_text, DATA(runner_user), RSRC_CONF,
                  "user that runners run as, when httpd is started by root "
                  "(default: nobody)"),
    AP_INIT_TAKE1("AgentRunners", set_number, DATA(runners), RSRC_CONF,
                  "runner processes (default: 1)"),
    AP_INIT_TAKE1("AgentRunnerSlots", set_number, DATA(runner_slots), RSRC_CONF,
                  "runs of one runner at once (default: 100)"),
    AP_INIT_TAKE1("AgentRunnerMemory", set_runner_memory, NULL, RSRC_CONF,
                  "bytes of memory of one runner, a number or one with K, M or "
                  "G; 0: any (default: 1G)"),
    AP_INIT_TAKE1("AgentRunTimeout", set_number, DATA(run_timeout), RSRC_CONF,
                  "seconds a run may execute (default: 3600)"),
    AP_INIT_TAKE1("AgentDrainTimeout", set_number, DATA(drain_timeout),
                  RSRC_CONF,
                  "seconds runs may go on after a graceful restart "
                  "(default: 180)"),
    AP_INIT_TAKE1("AgentEventRetention", set_number, DATA(retention_days),
                  RSRC_CONF, "days a run's events are kept (default: 2)"),
    AP_INIT_TAKE1("AgentFeedbackURL", set_feedback_url, NULL, RSRC_CONF,
                  "where the feedback of a run goes, with {run_id} and {key} "
                  "(default: none)"),
    AP_INIT_TAKE1(
        "AgentMaxWaiters", set_number, DATA(max_waiters), RSRC_CONF,
        "requests of one child that may wait for runs at once "
        "(default: what the MPM and open files have room for, at most "
        "10000)"),
    AP_INIT_TAKE1("AgentMaxWaitersPerAddress", set_number,
                  DATA(waiters_per_address), RSRC_CONF,
                  "those of them that one client address may have, 0 for any "
                  "number (default: a quarter of them, at least 8)"),
    AP_INIT_FLAG("AgentParking", set_flag, DATA(parking), RSRC_CONF,
                 "On: a request that waits holds no thread, where the MPM "
                 "allows it (default: On)"),
    AP_INIT_FLAG("AgentWebhooks", set_flag, DATA(webhooks), RSRC_CONF,
                 "whether runs may name a webhook, and whether this server "
                 "delivers them (default: On)"),
    AP_INIT_TAKE1("AgentWebhookSecretFile", agent_directive_webhook_secret,
                  NULL, RSRC_CONF,
                  "file with the secret that webhooks are signed with "
                  "(default: no signature)"),
    AP_INIT_ITERATE("AgentWebhookAllow", agent_directive_webhook_allow, NULL,
                    RSRC_CONF,
                    "blocks of addresses, or hosts, to which webhooks may go "
                    "beside public addresses (default: none)"),
    AP_INIT_ITERATE("AgentWebhookDeny", agent_directive_webhook_deny, NULL,
                    RSRC_CONF,
                    "addresses and blocks of them to which webhooks never go "
                    "(default: none)"),
    AP_INIT_ITERATE("AgentWebhookPorts", agent_directive_webhook_ports, NULL,
                    RSRC_CONF, "ports of webhooks (default: 80 443)"),
    AP_INIT_TAKE1("AgentWebhookTimeout", set_number, DATA(webhook_timeout),
                  RSRC_CONF,
                  "seconds an attempt to deliver a webhook may take "
                  "(default: 10)"),
    AP_INIT_TAKE1("AgentPrefix", set_prefix, NULL, RSRC_CONF | ACCESS_CONF,
                  "path under which the API stands (default: none)"),
    AP_INIT_TAKE1("AgentMaxBody", set_max_body, NULL, RSRC_CONF | ACCESS_CONF,
                  "bytes of a request body, a number or one with K, M or G "
                  "(default: 4M)"),
    AP_INIT_ITERATE("AgentAllowOrigin", allow_origin, NULL,
                    RSRC_CONF | ACCESS_CONF,
                    "origins whose pages may use the API beside the server's "
                    "own (default: none)"),
    AP_INIT_TAKE1("AgentMultitaskDefault", set_multitask, NULL,
                  RSRC_CONF | ACCESS_CONF,
                  "what a second run on a busy thread does when the request "
                  "does not say: reject, enqueue, interrupt or rollback "
                  "(default: reject)"),
    AP_INIT_RAW_ARGS("<AgentGraph", agent_directive_graph, NULL, RSRC_CONF,
                     "a built-in graph: model and tools (default: none)"),
    AP_INIT_TAKE1("AgentModel", agent_directive_model, NULL, RSRC_CONF,
                  "demo, anthropic:NAME or openai:NAME (required)"),
    AP_INIT_TAKE1("AgentModelURL", agent_directive_model_url, NULL, RSRC_CONF,
                  "base URL of the model's API (default: the vendor's)"),
    AP_INIT_TAKE1("AgentModelKeyFile", agent_directive_model_key, NULL,
                  RSRC_CONF, "file with the model's API key (default: no key)"),
    AP_INIT_TAKE1("AgentModelTimeout", agent_directive_model_timeout, NULL,
                  RSRC_CONF,
                  "seconds without a byte from the model (default: 120)"),
    AP_INIT_TAKE1("AgentModelMaxTokens", agent_directive_max_tokens, NULL,
                  RSRC_CONF, "tokens of one answer (default: 4096)"),
    AP_INIT_TAKE1("AgentSystemPrompt", agent_directive_system_prompt, NULL,
                  RSRC_CONF, "what the model is told first (default: none)"),
    AP_INIT_TAKE1("AgentMaxSteps", agent_directive_max_steps, NULL, RSRC_CONF,
                  "steps of one run (default: 25)"),
    AP_INIT_TAKE_ARGV("AgentTool", agent_directive_tool, NULL, RSRC_CONF,
                      "NAME builtin, or NAME POST URL SCHEMAFILE "
                      "[DESCRIPTION] (default: none)"),
    {NULL}};
