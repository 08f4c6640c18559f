/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c ../t/supervisor/names.c */
/*
 * The supervisor without httpd: `standalone CONFIG.json`. For tests, and as an
 * example of how to run it under another service manager.
 *
 * Members of the file: conninfo, region, node, runner, graphs (object with the
 * keys "graph" or "deployment/graph"; a pool for each deployment), runners,
 * slots, runner_memory (bytes), runner_files, runner_processes, runner_idle_ms,
 * runner_busy_ms, runner_uid, runner_gid (runner and these also in
 * pools.DEPLOYMENT, which may have directory, and environment, an array of
 * texts), children, child_connections, lease_sec, retention_days,
 * drain_timeout_ms, cgroup (a directory), and also in pools.DEPLOYMENT
 * cgroup_memory, cgroup_processes, cgroup_cpu_percent, run_timeout_ms,
 * store_ttl_ms, timing_ms (ping_interval, ping_timeout, ready_timeout,
 * cancel_grace, drain_grace, quarantine, renew, stop, kill, statement,
 * patience, credit), uid, gid, life_fd (an inherited descriptor), wake (path of
 * a datagram socket to make), webhooks (allow, deny and ports: arrays of texts;
 * key: base64; timeout_ms).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <apr_encode.h>
#include <apr_general.h>
#include <apr_strings.h>

#include "../../mod_agent/core/deployment.h"
#include "../../mod_agent/core/json.h"
#include "../../mod_agent/supervisor/supervisor.h"

static void write_log(void *baton, agent_log_level_t level, const char *id,
                      apr_status_t rv, const char *text)
{
    struct timespec now;
    char reason[128] = "";

    clock_gettime(CLOCK_REALTIME, &now);
    if (rv != APR_SUCCESS) {
        apr_strerror(rv, reason, sizeof(reason));
    }
    fprintf(stderr, "%ld.%03ld %d %s: %s%s%s\n", (long)now.tv_sec,
            now.tv_nsec / 1000000, (int)level, id, text,
            reason[0] != '\0' ? ": " : "", reason);
}

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "standalone: %s: %s\n", what, why);
    exit(2);
}

static json_object *read_config(const char *path)
{
    json_object *config = json_object_from_file(path);

    if (config == NULL) {
        fail(path, json_util_get_last_err());
    }
    return config;
}

static apr_interval_time_t get_ms(json_object *config, const char *key,
                                  int fallback)
{
    return apr_time_from_msec(agent_json_integer(config, key, fallback));
}

/* ---- pools ---- */

/* A key of `graphs`: "graph" or "deployment/graph". */
static const char *name_of(const char *key)
{
    const char *slash = strchr(key, '/');

    return slash != NULL ? slash + 1 : key;
}

static const char *deployment_of(const char *key, apr_pool_t *pool)
{
    return name_of(key) != key
        ? apr_pstrmemdup(pool, key, (apr_size_t)(name_of(key) - key) - 1)
        : AGENT_DEPLOYMENT_NAME;
}

/* The pool of the deployment, added if it is missing. */
static agent_pool_config_t *find_pool(agent_supervisor_config_t *config,
                                      const char *deployment)
{
    int i = 0;

    while (i < config->pool_count
           && strcmp(config->pools[i].deployment, deployment) != 0) {
        i++;
    }
    config->pools[i].deployment = deployment;
    config->pools[i].name = deployment;
    config->pool_count = i == config->pool_count ? i + 1 : config->pool_count;
    return &config->pools[i];
}

/* The value of a member for the pool: of `pools`.DEPLOYMENT, else of the
 * configuration. */
static apr_int64_t get_of_pool(const agent_pool_config_t *pool,
                               json_object *json, const char *key,
                               apr_int64_t fallback)
{
    json_object *own = agent_json_get(agent_json_get(json, "pools"),
                                      pool->deployment);

    return agent_json_integer(own, key,
                              agent_json_integer(json, key, fallback));
}

/* The texts of an array, ended by NULL; NULL without an array. */
static const char *const *read_texts(json_object *texts, apr_pool_t *memory)
{
    size_t count = texts != NULL ? json_object_array_length(texts) : 0;
    const char **list = apr_pcalloc(memory, (count + 1) * sizeof(*list));

    for (size_t i = 0; i < count; i++) {
        list[i] = json_object_get_string(json_object_array_get_idx(texts, i));
    }
    return count > 0 ? list : NULL;
}

static void fill_pool(agent_pool_config_t *pool, json_object *json,
                      apr_pool_t *memory)
{
    json_object *own = agent_json_get(agent_json_get(json, "pools"),
                                      pool->deployment);

    pool->program = agent_json_string(
        own, "runner", agent_json_string(json, "runner", "agent-runner"));
    pool->directory = agent_json_string(own, "directory", NULL);
    pool->environment = read_texts(agent_json_get(own, "environment"), memory);
    pool->uid = (uid_t)get_of_pool(pool, json, "runner_uid", -1);
    pool->gid = (gid_t)get_of_pool(pool, json, "runner_gid", -1);
    pool->runners = (int)get_of_pool(pool, json, "runners", 1);
    pool->slots = (int)get_of_pool(pool, json, "slots", 100);
    pool->memory = get_of_pool(pool, json, "runner_memory", 0);
    pool->max_runs = (int)get_of_pool(pool, json, "runner_max_runs", 0);
    pool->recycle_memory = get_of_pool(pool, json, "runner_recycle_memory", 0);
    pool->files = (int)get_of_pool(pool, json, "runner_files", 0);
    pool->processes = (int)get_of_pool(pool, json, "runner_processes", 0);
    pool->limits.memory = get_of_pool(pool, json, "cgroup_memory", 0);
    pool->limits.processes = (int)get_of_pool(pool, json, "cgroup_processes",
                                              0);
    pool->limits.cpu_percent = (int)get_of_pool(pool, json,
                                                "cgroup_cpu_percent", 0);
    pool->busy_timeout = apr_time_from_msec(
        get_of_pool(pool, json, "runner_busy_ms", 0));
    pool->idle_time = apr_time_from_msec(
        get_of_pool(pool, json, "runner_idle_ms", 0));
    pool->run_timeout = apr_time_from_msec(
        get_of_pool(pool, json, "run_timeout_ms", 3600000));
    pool->store_ttl = apr_time_from_msec(
        get_of_pool(pool, json, "store_ttl_ms", 0));
}

/* A pool for each deployment of `graphs`. */
static void fill_pools(agent_supervisor_config_t *config, json_object *json,
                       apr_pool_t *memory)
{
    json_object *graphs = agent_json_get(json, "graphs");
    size_t count = (size_t)json_object_object_length(graphs);

    config->pools = apr_pcalloc(memory, (count + 1) * sizeof(*config->pools));
    json_object_object_foreach(graphs, key, value)
    {
        agent_pool_config_t *pool = find_pool(config,
                                              deployment_of(key, memory));
        const char *before = pool->graphs != NULL ? pool->graphs : "{";
        const char **names = apr_pcalloc(memory, (count + 1) * sizeof(*names));

        /* Bounded: the graphs of the configuration. */
        pool->graphs = apr_pstrcat(memory, before,
                                   pool->graph_count > 0 ? "," : "",
                                   agent_json_quote(name_of(key), memory), ":",
                                   agent_json_print(value, memory), NULL);
        for (int i = 0; i < pool->graph_count; i++) {
            names[i] = pool->graph_ids[i];
        }
        names[pool->graph_count++] = name_of(key);
        pool->graph_ids = names;
    }
    for (int i = 0; i < config->pool_count; i++) {
        config->pools[i].graphs = apr_pstrcat(memory, config->pools[i].graphs,
                                              "}", NULL);
        fill_pool(&config->pools[i], json, memory);
    }
}

static int open_wake(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;

    if (path == NULL) {
        return -1;
    }
    fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    apr_cpystrn(address.sun_path, path, sizeof(address.sun_path));
    unlink(path);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0
        || chmod(path, 0777) != 0) {
        fail(path, strerror(errno));
    }
    return fd;
}

/* Adds each text of an array to the rule. */
static void fill_rule(agent_egress_t *rule,
                      bool (*add)(agent_egress_t *, const char *),
                      json_object *texts)
{
    for (size_t i = 0; texts && i < json_object_array_length(texts); i++) {
        const char *text = json_object_get_string(
            json_object_array_get_idx(texts, i));

        if (!add(rule, text)) {
            fail("webhooks", text);
        }
    }
}

static void fill_webhooks(agent_webhook_config_t *config, json_object *json,
                          apr_pool_t *pool)
{
    agent_egress_t *rule = agent_egress_make(pool);
    const char *key = agent_json_string(json, "key", NULL);

    fill_rule(rule, agent_egress_allow, agent_json_get(json, "allow"));
    fill_rule(rule, agent_egress_deny, agent_json_get(json, "deny"));
    fill_rule(rule, agent_egress_allow_ports, agent_json_get(json, "ports"));
    config->is_on = json != NULL;
    config->egress = rule;
    config->timeout = get_ms(json, "timeout_ms", 0);
    if (key != NULL) {
        agent_webhook_key_t *own = apr_pcalloc(pool, sizeof(*own));

        own->bytes = apr_pdecode_base64_binary(pool, key, APR_ENCODE_STRING,
                                               APR_ENCODE_NONE, &own->length);
        config->keys = own;
        config->key_count = 1;
    }
}

static void fill_config(agent_supervisor_config_t *config, json_object *json,
                        apr_pool_t *pool)
{
    json_object *timing = agent_json_get(json, "timing_ms");

    config->conninfo = agent_json_string(json, "conninfo", "");
    config->region = agent_json_string(json, "region", NULL);
    config->node_name = agent_json_string(json, "node", "test");
    config->uid = (uid_t)agent_json_integer(json, "uid", -1);
    config->gid = (gid_t)agent_json_integer(json, "gid", -1);
    fill_pools(config, json, pool);
    config->cgroup = agent_json_string(json, "cgroup", NULL);
    config->drain_timeout = get_ms(json, "drain_timeout_ms", 180000);
    config->children = (int)agent_json_integer(json, "children", 0);
    config->child_connections = (int)agent_json_integer(json,
                                                        "child_connections", 0);
    config->lease_sec = (int)agent_json_integer(json, "lease_sec", 20);
    config->event_retention_days = (int)agent_json_integer(json,
                                                           "retention_days", 2);
    config->audit_retention_days = 400;
    config->wake_fd = open_wake(agent_json_string(json, "wake", NULL));
    config->life_fd = (int)agent_json_integer(json, "life_fd", -1);
    config->log.write = write_log;
    fill_webhooks(&config->webhooks, agent_json_get(json, "webhooks"), pool);
    config->timing.ping_interval = get_ms(timing, "ping_interval", 0);
    config->timing.ping_timeout = get_ms(timing, "ping_timeout", 0);
    config->timing.ready_timeout = get_ms(timing, "ready_timeout", 0);
    config->timing.import_pause = get_ms(timing, "import_pause", 0);
    config->timing.cancel_grace = get_ms(timing, "cancel_grace", 0);
    config->timing.drain_grace = get_ms(timing, "drain_grace", 0);
    config->timing.quarantine = get_ms(timing, "quarantine", 0);
    config->timing.renew = get_ms(timing, "renew", 0);
    config->timing.stop = get_ms(timing, "stop", 0);
    config->timing.kill = get_ms(timing, "kill", 0);
    config->timing.statement = get_ms(timing, "statement", 0);
    config->timing.patience = get_ms(timing, "patience", 0);
    config->timing.credit = get_ms(timing, "credit", 0);
}

int main(int argc, char **argv)
{
    agent_supervisor_config_t config = {.log_fd = 0};
    apr_pool_t *pool;
    json_object *json;
    int status;

    if (argc != 2) {
        fail("usage", "standalone CONFIG.json");
    }
    apr_initialize();
    apr_pool_create(&pool, NULL);
    json = read_config(argv[1]);
    fill_config(&config, json, pool);
    status = agent_supervisor_main(&config);
    json_object_put(json);
    apr_pool_destroy(pool);
    apr_terminate();
    return status;
}
