/* SPDX-License-Identifier: Apache-2.0 */
/* The directives, with checks of their values. config.c has the defaults. */
#include "directives.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include <apr_strings.h>

#include "../core/word.h"
#include "../private.h"
#include "config.h"
#include "location.h"
#include "published_address.h"
#include "region.h"
#include "value.h"

/* A run's start message must fit the 8 MiB line of the runner protocol. */
static const agent_size_range_t max_body_range = {1 << 10, 7 << 20, "1K", "7M",
                                                  false};

/* A directive with a whole number, stored as an int. */
typedef struct number_t {
    size_t offset;
    apr_int64_t low;
    apr_int64_t high;
} number_t;

/* A directive with a duration, stored as an apr_interval_time_t. */
typedef struct duration_t {
    size_t offset;
    agent_duration_range_t range;
} duration_t;

static const char *set_number(cmd_parms *cmd, void *dir, const char *arg)
{
    const number_t *number = cmd->info;
    const char *problem;
    char *config = (char *)agent_value_server(&problem, cmd);
    apr_int64_t value = 0;

    if (config == NULL) {
        return problem;
    }
    problem = agent_value_number(&value, cmd, arg, number->low, number->high);
    if (problem == NULL) {
        *(int *)(config + number->offset) = (int)value;
    }
    return problem;
}

static const char *set_duration(cmd_parms *cmd, void *dir, const char *arg)
{
    const duration_t *duration = cmd->info;
    const char *problem;
    char *config = (char *)agent_value_server(&problem, cmd);

    return config == NULL
        ? problem
        : agent_value_duration(
            (apr_interval_time_t *)(config + duration->offset), cmd, arg,
            &duration->range);
}

static const char *set_text(cmd_parms *cmd, void *dir, const char *arg)
{
    const size_t *offset = cmd->info;
    const char *problem;
    char *config = (char *)agent_value_server(&problem, cmd);

    if (config != NULL) {
        *(const char **)(config + *offset) = arg;
    }
    return problem;
}

static const char *set_flag(cmd_parms *cmd, void *dir, int on)
{
    const size_t *offset = cmd->info;
    const char *problem;
    char *config = (char *)agent_value_server(&problem, cmd);

    if (config != NULL) {
        *(int *)(config + *offset) = on;
    }
    return problem;
}

static const char *set_runner(cmd_parms *cmd, void *dir, const char *arg)
{
    const char *problem;
    agent_server_config_t *config = agent_value_server(&problem, cmd);

    if (config != NULL) {
        config->runner = ap_server_root_relative(cmd->pool, arg);
    }
    return problem;
}

static const char *set_cgroup(cmd_parms *cmd, void *dir, const char *arg)
{
    const char *problem;
    agent_server_config_t *config = agent_value_server(&problem, cmd);

    if (config == NULL) {
        return problem;
    }
    if (arg[0] != '/') {
        return apr_psprintf(cmd->pool,
                            "AgentRunnerCgroup: expected the absolute path "
                            "of a directory, got '%s'",
                            arg);
    }
    config->cgroup = arg;
    return NULL;
}

static const char *set_feedback_url(cmd_parms *cmd, void *dir, const char *arg)
{
    agent_dir_config_t *config = dir;
    const char *problem;

    if (strcasecmp(arg, "none") == 0) {
        config->feedback_url = "";
        return NULL;
    }
    problem = agent_value_url(cmd, arg);
    if (problem == NULL
        && (strstr(arg, "{run_id}") == NULL || strstr(arg, "{key}") == NULL)) {
        problem = apr_psprintf(cmd->pool,
                               "AgentFeedbackURL: expected a URL with {run_id} "
                               "and {key}, got '%s'",
                               arg);
    }
    config->feedback_url = arg;
    return problem;
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

    config->multitask_default = agent_word_find(arg, agent_word_strategies);
    return config->multitask_default != NULL
        ? NULL
        : apr_psprintf(cmd->pool,
                       "AgentMultitaskDefault: expected %s, got '%s'",
                       agent_word_print(agent_word_strategies, cmd->pool), arg);
}

static const char *set_max_body(cmd_parms *cmd, void *dir, const char *arg)
{
    agent_dir_config_t *config = dir;

    return agent_value_size(&config->max_body, cmd, arg, &max_body_range);
}

static const char *set_call_timeout(cmd_parms *cmd, void *dir, const char *arg)
{
    static const agent_duration_range_t range = {1, 300, "s", false};
    agent_dir_config_t *config = dir;

    return agent_value_duration(&config->call_timeout, cmd, arg, &range);
}

#define NUMBER(field, low, high)                                               \
    {                                                                          \
        offsetof(agent_server_config_t, field), low, high                      \
    }
#define DURATION(field, low, high, unit, is_whole)                             \
    {                                                                          \
        offsetof(agent_server_config_t, field),                                \
        {                                                                      \
            low, high, unit, is_whole                                          \
        }                                                                      \
    }

static const number_t address_serial = NUMBER(address_serial, 0, APR_INT32_MAX);
static const number_t max_waiters = NUMBER(max_waiters, 1, AGENT_MAX_WAITERS);
static const number_t waiters_per_address = NUMBER(waiters_per_address, 0,
                                                   AGENT_MAX_WAITERS);
static const number_t pool_size = NUMBER(pool_size, 1, 10000);

static const duration_t pool_wait = DURATION(pool_wait, 0, 60000, "ms", false);
static const duration_t query_timeout = DURATION(query_timeout, 10, 600000,
                                                 "ms", false);
static const duration_t connect_timeout = DURATION(connect_timeout, 10, 60000,
                                                   "ms", false);
static const duration_t drain_timeout = DURATION(drain_timeout, 0, 3600, "s",
                                                 false);
static const duration_t webhook_timeout = DURATION(webhook_timeout, 1, 300, "s",
                                                   false);
static const duration_t retention = DURATION(retention, 1, 3650, "d", true);
static const duration_t audit_retention = DURATION(audit_retention, 30, 3650,
                                                   "d", true);
static const duration_t log_retention = DURATION(log_retention, 0, 3650, "d",
                                                 true);
static const duration_t backup_retention = DURATION(backup_retention, 0, 3650,
                                                    "d", true);

static const size_t database = offsetof(agent_server_config_t, database);
static const size_t parking = offsetof(agent_server_config_t, parking);
static const size_t webhooks = offsetof(agent_server_config_t, webhooks);
static const size_t node = offsetof(agent_server_config_t, node);

/* command_rec's data pointer is not const; the data is. */
#define DATA(object) ((void *)&(object))

const command_rec agent_directives[] = {
    AP_INIT_TAKE1("AgentDatabase", set_text, DATA(database), RSRC_CONF,
                  "libpq connection string of the supervisor and of each "
                  "child's listener (default: DBDParams)"),
    AP_INIT_TAKE1("AgentNode", set_text, DATA(node), RSRC_CONF,
                  "name of this server among those that share the database "
                  "(default: the host name)"),
    AP_INIT_TAKE1("AgentRegion", agent_region_set, NULL, RSRC_CONF,
                  "region of this server and of its database (default: local)"),
    AP_INIT_TAKE_ARGV(
        "AgentRegionURL", agent_region_set_urls, NULL, RSRC_CONF,
        "REGION WEB API [BEACON]: a region's URLs (default: none)"),
    AP_INIT_RAW_ARGS("AgentIngressAddress", agent_directive_addresses,
                     DATA(agent_published_address_ingress), RSRC_CONF,
                     "addresses or blocks that clients connect to, and "
                     "until=DATE (default: none)"),
    AP_INIT_RAW_ARGS("AgentEgressAddress", agent_directive_addresses,
                     DATA(agent_published_address_egress), RSRC_CONF,
                     "addresses or blocks that the service connects from, and "
                     "until=DATE (default: none)"),
    AP_INIT_TAKE1("AgentAddressSerial", set_number, DATA(address_serial),
                  RSRC_CONF,
                  "number of the edition of these addresses (default: 0)"),
    AP_INIT_TAKE1("AgentWrongRegion", agent_region_set_wrong, NULL, RSRC_CONF,
                  "status of a request with a key of another region: 403, 421 "
                  "or 307 (default: 403)"),
    AP_INIT_TAKE1(
        "AgentDBPoolSize", set_number, DATA(pool_size), RSRC_CONF,
        "connections that one child uses at the same time (default: DBDMax)"),
    AP_INIT_TAKE1("AgentDBPoolWait", set_duration, DATA(pool_wait), RSRC_CONF,
                  "time to wait for a free connection (default: 1s)"),
    AP_INIT_TAKE1("AgentDBQueryTimeout", set_duration, DATA(query_timeout),
                  RSRC_CONF, "time limit of a statement (default: 5s)"),
    AP_INIT_TAKE1("AgentDBConnectTimeout", set_duration, DATA(connect_timeout),
                  RSRC_CONF,
                  "time limit to restore a connection (default: 1500ms)"),
    AP_INIT_TAKE1("AgentRunner", set_runner, NULL, RSRC_CONF,
                  "path of agent-runner (default: " AGENT_RUNNER_PATH ")"),
    AP_INIT_TAKE23("AgentApplication", agent_directive_application, NULL,
                   RSRC_CONF,
                   "NAME DIRECTORY [ignore-auth]: an application with a "
                   "langgraph.json, whose graphs are served (default: none)"),
    AP_INIT_TAKE1("AgentPythonProgram", agent_directive_python, NULL, RSRC_CONF,
                  "path of the Python that executes applications without a "
                  "virtual environment of their own (default: python3 in "
                  "/usr/local/bin, /usr/bin or /bin)"),
    AP_INIT_TAKE1("AgentNodeProgram", agent_directive_node, NULL, RSRC_CONF,
                  "path of the Node that executes applications in JavaScript "
                  "and TypeScript (default: node in /usr/local/bin, /usr/bin "
                  "or /bin)"),
    AP_INIT_TAKE1("AgentRunnerUser", agent_directive_runner_user, NULL,
                  RSRC_CONF,
                  "user that runners run as, when httpd is started by root "
                  "(default: nobody)"),
    AP_INIT_TAKE1("AgentRunners", agent_directive_runners, NULL, RSRC_CONF,
                  "runner processes of a pool (default: 1)"),
    AP_INIT_TAKE1(
        "AgentRunnerSlots", agent_directive_runner_slots, NULL, RSRC_CONF,
        "runs that one runner executes at the same time (default: 100)"),
    AP_INIT_TAKE1("AgentRunnerMemory", agent_directive_runner_memory, NULL,
                  RSRC_CONF,
                  "memory limit of one runner in bytes, or with K, M or G; 0: "
                  "none (default: 1G)"),
    AP_INIT_TAKE1("AgentRunnerMaxRuns", agent_directive_runner_max_runs, NULL,
                  RSRC_CONF,
                  "runs after which a runner is replaced; 0: any number "
                  "(default: 0)"),
    AP_INIT_TAKE1("AgentRunnerRecycleMemory",
                  agent_directive_runner_recycle_memory, NULL, RSRC_CONF,
                  "resident memory above which a runner is replaced, in bytes, "
                  "or with K, M or G; 0: any amount (default: 0)"),
    AP_INIT_TAKE1("AgentRunnerFiles", agent_directive_runner_files, NULL,
                  RSRC_CONF, "open files of one runner (default: 4096)"),
    AP_INIT_TAKE1("AgentRunnerProcesses", agent_directive_runner_processes,
                  NULL, RSRC_CONF,
                  "processes and threads of the user of runners; 0: no limit "
                  "(default: 0)"),
    AP_INIT_TAKE1(
        "AgentRunnerCgroup", set_cgroup, NULL, RSRC_CONF,
        "directory of a cgroup (v2) that is delegated to this server, "
        "for those of its pools of runners (default: none)"),
    AP_INIT_TAKE1("AgentPoolMemory", agent_directive_pool_memory, NULL,
                  RSRC_CONF,
                  "memory limit of all runners of a pool together, in bytes, "
                  "or with K, M or G; 0: none (default: 0)"),
    AP_INIT_TAKE1("AgentPoolProcesses", agent_directive_pool_processes, NULL,
                  RSRC_CONF,
                  "processes and threads of all runners of a pool together; "
                  "0: no limit (default: 0)"),
    AP_INIT_TAKE1("AgentPoolCPU", agent_directive_pool_cpu, NULL, RSRC_CONF,
                  "processor time of all runners of a pool together, in "
                  "percent of one processor; 0: no limit (default: 0)"),
    AP_INIT_TAKE1("AgentRunnerBusyTimeout", agent_directive_runner_busy_timeout,
                  NULL, RSRC_CONF,
                  "longest time that a node may keep a runner from its other "
                  "runs; 0: no limit (default: 1min)"),
    AP_INIT_TAKE1("AgentRunnerIdleTime", agent_directive_runner_idle_time, NULL,
                  RSRC_CONF,
                  "time without a run after which the runners of a pool end "
                  "until its next run; 0: never (default: 0)"),
    AP_INIT_TAKE1("AgentRunTimeout", agent_directive_run_timeout, NULL,
                  RSRC_CONF, "time limit of a run (default: 1h)"),
    AP_INIT_TAKE1(
        "AgentCallTimeout", set_call_timeout, NULL, RSRC_CONF | ACCESS_CONF,
        "time that a request waits for the answer of a graph (default: 10s)"),
    AP_INIT_TAKE1("AgentDrainTimeout", set_duration, DATA(drain_timeout),
                  RSRC_CONF,
                  "time that runs may continue after a graceful restart or "
                  "stop (default: 3min)"),
    AP_INIT_TAKE1("AgentAuditRetention", set_duration, DATA(audit_retention),
                  RSRC_CONF,
                  "time to keep the audit log of accounts (default: 400d)"),
    AP_INIT_TAKE1("AgentBackupRetention", set_duration, DATA(backup_retention),
                  RSRC_CONF,
                  "time that backups are kept, for deletions of accounts "
                  "(default: not known)"),
    AP_INIT_TAKE1("AgentLogRetention", set_duration, DATA(log_retention),
                  RSRC_CONF,
                  "time that logs are kept, for deletions of accounts "
                  "(default: not known)"),
    AP_INIT_TAKE1("AgentEventRetention", set_duration, DATA(retention),
                  RSRC_CONF, "time to keep the events of runs (default: 2d)"),
    AP_INIT_TAKE1(
        "AgentFeedbackURL", set_feedback_url, NULL, RSRC_CONF | ACCESS_CONF,
        "URL for feedback about runs, with {run_id} and {key}, or None "
        "(default: None)"),
    AP_INIT_TAKE1("AgentMaxWaiters", set_number, DATA(max_waiters), RSRC_CONF,
                  "requests of one child that may wait at the same time "
                  "(default: as many as the MPM and open files allow, at most "
                  "10000)"),
    AP_INIT_TAKE1("AgentMaxWaitersPerAddress", set_number,
                  DATA(waiters_per_address), RSRC_CONF,
                  "requests of one client address that may wait in one child; "
                  "0: no limit (default: a quarter of AgentMaxWaiters, at "
                  "least 8)"),
    AP_INIT_FLAG("AgentParking", set_flag, DATA(parking), RSRC_CONF,
                 "whether waiting requests release their thread, where the "
                 "MPM allows it (default: On)"),
    AP_INIT_FLAG("AgentWebhooks", set_flag, DATA(webhooks), RSRC_CONF,
                 "whether webhooks are accepted and delivered (default: On)"),
    AP_INIT_TAKE1("AgentWebhookSecretFile", agent_directive_webhook_secret,
                  NULL, RSRC_CONF,
                  "file with the secret that signs webhooks "
                  "(default: no signature)"),
    AP_INIT_TAKE2("AgentWebhookHeader", agent_directive_webhook_header, NULL,
                  RSRC_CONF, "header of deliveries (default: none)"),
    AP_INIT_ITERATE("AgentWebhookAllow", agent_directive_webhook_allow, NULL,
                    RSRC_CONF,
                    "address blocks or hosts that webhooks may call, besides "
                    "public addresses (default: none)"),
    AP_INIT_ITERATE("AgentWebhookDeny", agent_directive_webhook_deny, NULL,
                    RSRC_CONF,
                    "address blocks that webhooks never call (default: none)"),
    AP_INIT_ITERATE("AgentWebhookPorts", agent_directive_webhook_ports, NULL,
                    RSRC_CONF,
                    "ports that webhooks may call (default: 80 443)"),
    AP_INIT_ITERATE("AgentWebhookOrigin", agent_directive_webhook_origin, NULL,
                    RSRC_CONF, "origins of webhook URLs (default: all)"),
    AP_INIT_TAKE1("AgentWebhookTimeout", set_duration, DATA(webhook_timeout),
                  RSRC_CONF,
                  "time limit of one delivery of a webhook (default: 10s)"),
    AP_INIT_TAKE1("AgentThreadTTL", agent_directive_thread_ttl, NULL,
                  RSRC_CONF | ACCESS_CONF,
                  "time without activity after which a new thread is deleted, "
                  "or Off (default: Off)"),
    AP_INIT_TAKE1("AgentStoreTTL", agent_directive_store_ttl, NULL, RSRC_CONF,
                  "time after which an item of the store that was put without "
                  "a ttl is deleted, or Off (default: Off)"),
    AP_INIT_TAKE12("AgentDeployment", agent_directive_deployment, NULL,
                   RSRC_CONF | ACCESS_CONF,
                   "NAME [account=ID]: the deployment that is served, and the "
                   "account whose it is (default: default)"),
    AP_INIT_TAKE23("AgentLimit", agent_directive_limit, NULL, RSRC_CONF,
                   "NAME VALUE|none [account=ID]: the most of something that "
                   "each account, or that account, may have (default: no "
                   "limit)"),
    AP_INIT_ITERATE("AgentTrustUserHeader", agent_directive_trust, NULL,
                    RSRC_CONF | ACCESS_CONF,
                    "addresses and address blocks of proxies whose x-user-id "
                    "is believed also with authentication, or None "
                    "(default: None)"),
    AP_INIT_TAKE1("AgentSignUp", agent_directive_sign_up, NULL,
                  RSRC_CONF | ACCESS_CONF,
                  "whether a platform host lets customers create accounts: "
                  "Off, On or Invitation (default: Off)"),
    AP_INIT_TAKE1("AgentPrefix", set_prefix, NULL, RSRC_CONF | ACCESS_CONF,
                  "path of the API in the location (default: none)"),
    AP_INIT_TAKE1("AgentMaxBody", set_max_body, NULL, RSRC_CONF | ACCESS_CONF,
                  "size limit of a request body in bytes, or with K, M or G "
                  "(default: 4M)"),
    AP_INIT_ITERATE("AgentAllowOrigin", agent_directive_origin, NULL,
                    RSRC_CONF | ACCESS_CONF,
                    "origins of web pages that may use the API, besides its "
                    "own (default: none)"),
    AP_INIT_TAKE1("AgentAllowOriginMatch", agent_directive_origin_match, NULL,
                  RSRC_CONF | ACCESS_CONF,
                  "regular expression of more such origins (default: none)"),
    AP_INIT_ITERATE("AgentConfigurableHeaders", agent_directive_headers, NULL,
                    RSRC_CONF | ACCESS_CONF,
                    "request headers that runs get in config.configurable, or "
                    "None (default: None)"),
    AP_INIT_TAKE1(
        "AgentMultitaskDefault", set_multitask, NULL, RSRC_CONF | ACCESS_CONF,
        "strategy for a second run on a busy thread: reject, enqueue, "
        "interrupt or rollback "
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
                  RSRC_CONF, "time limit for a silent model (default: 2min)"),
    AP_INIT_TAKE1(
        "AgentModelMaxTokens", agent_directive_max_tokens, NULL, RSRC_CONF,
        "length limit of a model's response in tokens (default: 4096)"),
    AP_INIT_TAKE1("AgentSystemPrompt", agent_directive_system_prompt, NULL,
                  RSRC_CONF, "system prompt of the model (default: none)"),
    AP_INIT_TAKE1("AgentMaxSteps", agent_directive_max_steps, NULL, RSRC_CONF,
                  "steps of one run (default: 25)"),
    AP_INIT_TAKE_ARGV("AgentTool", agent_directive_tool, NULL, RSRC_CONF,
                      "NAME builtin, or NAME POST URL SCHEMAFILE "
                      "[DESCRIPTION] (default: none)"),
    {NULL}};
