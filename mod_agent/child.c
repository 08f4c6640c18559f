/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and stops the parts that requests of a child share; see child.h. */
#include "child.h"

#include <ap_mpm.h>
#include <scoreboard.h>

#include "auth/authenticate.h"
#include "config/account_limit.h"
#include "config/capacity.h"
#include "config/conftree.h"
#include "config/dbd.h"
#include "config/host.h"
#include "config/region.h"
#include "core/deployment.h"
#include "core/heap.h"
#include "core/lock.h"
#include "daemon.h"
#include "handlers/handlers.h"
#include "http/body.h"
#include "http/unread.h"
#include "model/served_deployment.h"
#include "model/system.h"
#include "private.h"
#include "wait/park.h"

/* Interval between the heartbeats of a waiting request. SDKs treat silence of
 * three intervals as a lost connection. */
#define HEARTBEAT apr_time_from_sec(5)

/* The generation that this child belongs to. */
static ap_generation_t own_generation;

/* Returns HEARTBEAT, but at most half of the shortest Timeout, since the MPM
 * closes a connection that is silent for Timeout. */
static apr_interval_time_t choose_heartbeat(const server_rec *server)
{
    apr_interval_time_t heartbeat = HEARTBEAT;

    for (; server != NULL; server = server->next) {
        if (server->timeout > 0 && server->timeout / 2 < heartbeat) {
            heartbeat = server->timeout / 2;
        }
    }
    return heartbeat;
}

static bool is_child_ending(void)
{
    int state = AP_MPMQ_RUNNING;

    return ap_get_scoreboard_global()->running_generation != own_generation
        || (ap_mpm_query(AP_MPMQ_MPM_STATE, &state) == APR_SUCCESS
            && state == AP_MPMQ_STOPPING);
}

/* Whether child_stopping is called in time. False for the prefork MPM, which
 * calls it after the current request: too late for one that waits. */
static bool is_notified_of_end(void)
{
    int threaded = 0;

    return ap_mpm_query(AP_MPMQ_IS_THREADED, &threaded) == APR_SUCCESS
        && threaded != AP_MPMQ_NOT_SUPPORTED;
}

static apr_status_t start_waiters(agent_child_t *child, server_rec *server,
                                  apr_pool_t *pool)
{
    const agent_server_config_t *config = child->config;
    const agent_log_t log = agent_daemon_log();
    int parked = agent_capacity_waiters(config);
    int blocked = agent_capacity_blocked_waiters(config);
    int connections = agent_capacity_turn_connections(
        agent_config_pool_size(config, agent_dbd_max(pool)));
    const agent_waiter_limits_t limits = {
        .parked = parked,
        .blocked = blocked,
        .deployments = agent_conftree_count("AgentDeployment",
                                            AGENT_DEPLOYMENT_NAME),
        .parked_per_address = agent_capacity_waiters_per_address(config,
                                                                 parked),
        .blocked_per_address = agent_capacity_waiters_per_address(config,
                                                                  blocked),
        .threads = {.least = agent_capacity_min_turns(connections),
                    .most = agent_capacity_max_turns(connections),
                    .reserve = agent_capacity_reserved_threads(),
                    .count_idle = agent_capacity_idle_threads,
                    .baton = agent_capacity_make_child(pool)},
        .heartbeat = choose_heartbeat(server),
        .is_ending = is_notified_of_end() ? NULL : is_child_ending,
        .grace = agent_config_drain_timeout(config)};

    apr_status_t rv = agent_db_pool_create_part(
        &child->turn_db, child->db, connections,
        agent_config_query_timeout(config), pool);

    return rv != APR_SUCCESS
        ? rv
        : agent_waiter_registry_create(&child->waiters,
                                       agent_dbd_conninfo(config, pool),
                                       child->db, &limits, &log, pool);
}

agent_db_settings_t agent_child_db_settings(const agent_server_config_t *config,
                                            apr_pool_t *pool)
{
    return (agent_db_settings_t){
        .connect_timeout = agent_config_connect_timeout(config),
        .query_timeout = agent_config_query_timeout(config),
        .region = agent_region_own(config),
        .limits = agent_account_limits_stored(config, pool),
        .log = agent_daemon_log()};
}

static apr_status_t start_database(agent_child_t *child, server_rec *server,
                                   apr_pool_t *pool)
{
    const agent_server_config_t *config = child->config;
    agent_db_settings_t settings = agent_child_db_settings(config, pool);

    return agent_db_pool_create(
        &child->db, server, agent_dbd_plain_params(pool),
        agent_config_pool_size(config, agent_dbd_max(pool)),
        agent_config_pool_wait(config), &settings, pool);
}

/* A server without graphs may have no database. With a database it serves runs
 * that other hosts execute, and exports of accounts. */
static bool has_waiters(const agent_child_t *child)
{
    return child->db != NULL && agent_host_is_any(child->config);
}

static apr_status_t start(agent_child_t *child, server_rec *server,
                          apr_pool_t *pool)
{
    const agent_server_config_t *config = child->config;
    apr_status_t rv = agent_park_start(agent_config_parking(config),
                                       agent_capacity_client_threads(), pool);

    if (rv == APR_SUCCESS) {
        rv = agent_bodies_create(&child->bodies, agent_capacity_body_bytes(),
                                 agent_capacity_body_waiters(config),
                                 agent_capacity_reserved_threads(), pool);
    }
    if (rv == APR_SUCCESS) {
        rv = agent_unread_start(agent_capacity_discarding_threads(),
                                is_child_ending, pool);
    }
    if (rv == APR_SUCCESS) {
        rv = agent_served_deployments_create(&child->deployments, pool);
    }
    if (rv == APR_SUCCESS) {
        rv = agent_sign_up_start(child, pool);
    }
    if (rv == APR_SUCCESS && agent_dbd_check(config, pool) == NULL) {
        rv = start_database(child, server, pool);
    }
    if (rv == APR_SUCCESS && child->db != NULL) {
        rv = agent_authenticate_create(&child->auth, child->db,
                                       agent_region_own(config), pool);
    }
    return rv == APR_SUCCESS && has_waiters(child)
        ? start_waiters(child, server, pool)
        : rv;
}

/* Logs a problem with the database before it fails the first request. */
static void check_database(const agent_child_t *child, server_rec *server,
                           apr_pool_t *pool)
{
    apr_pool_t *scratch;
    agent_error_t *err;

    apr_pool_create(&scratch, pool);
    if (agent_system_ping(child->db, &err, scratch) != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, server,
                     AGENT_LOGNO(0407) "%s %s", err->detail,
                     err->cause ? err->cause : "");
    }
    apr_pool_destroy(scratch);
}

agent_child_t *agent_child_start(server_rec *server, apr_pool_t *pool)
{
    agent_child_t *child = apr_pcalloc(pool, sizeof(*child));
    apr_status_t rv;

    own_generation = ap_get_scoreboard_global()->running_generation;
    child->config = agent_config_server(server);
    child->wake_fd = agent_daemon_child_init(server);
    agent_heap_start();
    agent_lock_start(!is_notified_of_end());
    child->throttles = apr_pcalloc(pool,
                                   AGENT_E_COUNT * sizeof(*child->throttles));
    rv = start(child, server, pool);
    if (rv != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_CRIT, rv, server,
                     AGENT_LOGNO(0408) "a child could not be set up: it "
                                       "answers 503");
        return NULL;
    }
    if (has_waiters(child)) {
        check_database(child, server, pool);
    }
    return child;
}

void agent_child_stop(const agent_child_t *child, bool graceful)
{
    if (child->waiters != NULL) {
        agent_waiter_registry_stop(
            child->waiters,
            graceful ? agent_config_drain_timeout(child->config) : 0);
    }
}
