/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mod_agent: the deployment API of an agent platform on PostgreSQL.
 *
 * The module's record and its hooks; everything else is in the folders beside
 * this file.
 */
#include <string.h>
#include <strings.h>

#include <ap_mpm.h>
#include <apr_dbd.h>
#include <apr_optional.h>
#include <apr_strings.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>
#include <mpm_common.h>
#include <scoreboard.h>
#include <mod_dbd.h>

#include "config/capacity.h"
#include "config/directives.h"
#include "config/graph.h"
#include "core/heap.h"
#include "daemon.h"
#include "handlers/handlers.h"
#include "http/body.h"
#include "http/browser.h"
#include "http/head.h"
#include "http/problem.h"
#include "http/response.h"
#include "http/server_error.h"
#include "model/account.h"
#include "private.h"
#include "wait/park.h"

/* mod_dbd's own default of DBDMax. */
#define DBD_MAX_DEFAULT 10

/* Between two signs of life of a request that waits; SDKs take silence of three
 * times this for a dead connection. */
#define HEARTBEAT apr_time_from_sec(5)

/* SetHandler agent */
static const char handler_name[] = "agent";

/* Set in child_init. */
static agent_child_t *current_child;

static int answer(agent_call_t *call)
{
    if (call->err != NULL) {
        return agent_problem_send(call);
    }
    if (agent_browser_is_preflight(call)) {
        return agent_response_empty(call, HTTP_NO_CONTENT);
    }
    return agent_router_dispatch(call, agent_routes);
}

static int handle_request(request_rec *r)
{
    agent_call_t *call;

    if (r->handler == NULL || strcmp(r->handler, handler_name) != 0) {
        return DECLINED;
    }
    if (current_child == NULL) {
        return HTTP_SERVICE_UNAVAILABLE;
    }
    /* Not on the stack: a request that waits outlives this call. */
    call = apr_pcalloc(r->pool, sizeof(*call));
    call->r = r;
    call->pool = r->pool;
    call->child = current_child;
    call->dir = agent_config_dir(r);
    call->db = current_child->db;
    call->account_id = AGENT_ACCOUNT_DEFAULT;
    call->ids[0] = call->account_id;
    if (agent_head_check(call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    /* What it refuses is answered when the body is there: httpd would read it
     * with a thread. */
    agent_browser_check(call);
    return agent_body_receive(call, answer);
}

/* The paths of the API are no files: httpd need not look for them below the
 * document root, at five system calls a request. */
static int skip_files(request_rec *r)
{
    ap_conf_vector_t *config = r->per_dir_config;
    const char *handler;

    /* httpd has forgotten the location for the sake of <Directory>, and looks
     * for it once more afterwards; what it found is cached. */
    ap_location_walk(r);
    handler = agent_config_handler(r);
    r->per_dir_config = config;
    return handler != NULL && strcmp(handler, handler_name) == 0 ? OK
                                                                 : DECLINED;
}

/* The connection string for what is not a request: given, or mod_dbd's. */
static const char *find_conninfo(const agent_server_config_t *config,
                                 apr_pool_t *pool)
{
    const char *args;

    if (config->database != NULL) {
        return config->database;
    }
    args = agent_config_other_directive("DBDParams");
    return args != NULL ? ap_getword_conf(pool, &args) : NULL;
}

static int refuse_start(server_rec *server, const char *text)
{
    ap_log_error(APLOG_MARK, APLOG_EMERG, 0, server, AGENT_LOGNO(0405) "%s",
                 text);
    return HTTP_INTERNAL_SERVER_ERROR;
}

/* What no single directive can see; also part of `httpd -t`. */
static int check_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp,
                        server_rec *server)
{
    const agent_server_config_t *config = agent_config_server(server);
    const char *driver = agent_config_other_directive("DBDriver");
    const char *runner = agent_config_runner(config);
    apr_finfo_t info;

    if (config->graphs->nelts == 0) {
        return OK;
    }
    if (APR_RETRIEVE_OPTIONAL_FN(ap_dbd_open) == NULL) {
        return refuse_start(server,
                            "mod_agent needs mod_dbd: expected a "
                            "LoadModule dbd_module, got none");
    }
    if (driver == NULL || strcasecmp(driver, "pgsql") != 0) {
        return refuse_start(server,
                            apr_psprintf(ptemp,
                                         "DBDriver: expected pgsql, got %s",
                                         driver ? driver : "none"));
    }
    if (find_conninfo(config, ptemp) == NULL) {
        return refuse_start(server,
                            "DBDParams: expected a PostgreSQL "
                            "connection string, got none");
    }
    if (apr_stat(&info, runner, APR_FINFO_TYPE, ptemp) != APR_SUCCESS
        || info.filetype != APR_REG) {
        return refuse_start(server,
                            apr_psprintf(ptemp,
                                         "AgentRunner: expected the program "
                                         "agent-runner, got '%s'",
                                         runner));
    }
    return agent_daemon_check_user(config, server) ? OK
                                                   : HTTP_INTERNAL_SERVER_ERROR;
}

static int start_supervisor(apr_pool_t *pconf, apr_pool_t *plog,
                            apr_pool_t *ptemp, server_rec *server)
{
    agent_server_config_t *config = agent_config_server(server);
    apr_status_t rv;

    /* The configuration is read twice at start, and once by `httpd -t`. */
    if (ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG
        || ap_state_query(AP_SQ_RUN_MODE) != AP_SQ_RM_NORMAL
        || config->graphs->nelts == 0) {
        return OK;
    }
    agent_capacity_check(config, server);
    ap_add_version_component(pconf, "mod_agent/" AGENT_VERSION);
    rv = agent_daemon_start(config, find_conninfo(config, pconf), server,
                            pconf);
    if (rv != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_EMERG, rv, server,
                     AGENT_LOGNO(0406) "the supervisor could not be set up");
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    return OK;
}

static int find_dbd_max(apr_pool_t *pool)
{
    const char *args = agent_config_other_directive("DBDMax");

    return args != NULL ? (int)apr_atoi64(ap_getword_conf(pool, &args))
                        : DBD_MAX_DEFAULT;
}

/* A line in the log beats finding out from the first request. */
static void check_database(const agent_child_t *child, server_rec *server,
                           apr_pool_t *pool)
{
    apr_pool_t *scratch;
    agent_error_t *err;
    const char *body;

    apr_pool_create(&scratch, pool);
    if (agent_pool_call(&body, child->db, AGENT_SQL_PING, NULL, &err, scratch)
        != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, server,
                     AGENT_LOGNO(0407) "%s %s", err->detail,
                     err->cause ? err->cause : "");
    }
    apr_pool_destroy(scratch);
}

/* Two signs of life, at least, within the shortest Timeout: the MPM closes what
 * does nothing for so long. */
static apr_interval_time_t find_heartbeat(const server_rec *server)
{
    apr_interval_time_t heartbeat = HEARTBEAT;

    for (; server != NULL; server = server->next) {
        if (server->timeout > 0 && server->timeout / 2 < heartbeat) {
            heartbeat = server->timeout / 2;
        }
    }
    return heartbeat;
}

/* Set in child_init: the generation that this child belongs to. */
static ap_generation_t own_generation;

static bool is_child_ending(void)
{
    int state = AP_MPMQ_RUNNING;

    return ap_get_scoreboard_global()->running_generation != own_generation
        || (ap_mpm_query(AP_MPMQ_MPM_STATE, &state) == APR_SUCCESS
            && state == AP_MPMQ_STOPPING);
}

/* The prefork MPM runs child_stopping when the child's request has ended, which
 * is too late for one that waits. */
static bool is_told_of_end(void)
{
    int threaded = 0;

    return ap_mpm_query(AP_MPMQ_IS_THREADED, &threaded) == APR_SUCCESS
        && threaded != AP_MPMQ_NOT_SUPPORTED;
}

static apr_status_t start_waits(agent_child_t *child, server_rec *server,
                                apr_pool_t *pool)
{
    const agent_server_config_t *config = child->config;
    const agent_log_t log = agent_daemon_log();
    int parked = agent_capacity_waiters(config);
    int blocked = agent_capacity_blocked(config);
    const agent_waits_limits_t limits = {
        .parked = parked,
        .blocked = blocked,
        .parked_per_address = agent_capacity_per_address(config, parked),
        .blocked_per_address = agent_capacity_per_address(config, blocked),
        .threads = {.least = agent_capacity_least_turns(),
                    .most = agent_capacity_most_turns(),
                    .reserve = agent_capacity_most_turns(),
                    .count_idle = agent_capacity_count_idle,
                    .baton = agent_capacity_make_slot(pool)},
        .heartbeat = find_heartbeat(server),
        .is_ending = is_told_of_end() ? NULL : is_child_ending,
        .grace = agent_config_drain_timeout(config)};

    apr_status_t rv = agent_park_start(agent_config_parking(config), pool);

    return rv != APR_SUCCESS
        ? rv
        : agent_waits_create(&child->waits, find_conninfo(config, pool),
                             child->db, &limits, &log, pool);
}

/* What mod_dbd connects with; NULL where it does more with a new connection. */
static const char *find_renewal_params(apr_pool_t *pool)
{
    const char *args = agent_config_other_directive("DBDParams");

    return args != NULL && agent_config_other_directive("DBDInitSQL") == NULL
        ? ap_getword_conf(pool, &args)
        : NULL;
}

static apr_status_t init_child(agent_child_t *child, server_rec *server,
                               apr_pool_t *pool)
{
    const agent_server_config_t *config = child->config;
    const agent_db_limits_t limits = {agent_config_connect_timeout(config),
                                      agent_config_query_timeout(config)};
    apr_status_t rv = agent_pool_create(
        &child->db, server, find_renewal_params(pool),
        agent_config_pool_size(config, find_dbd_max(pool)),
        agent_config_pool_wait(config), &limits, pool);

    if (rv == APR_SUCCESS) {
        rv = agent_bodies_create(&child->bodies, agent_capacity_body_bytes(),
                                 agent_capacity_reading(config), pool);
    }
    return rv != APR_SUCCESS ? rv : start_waits(child, server, pool);
}

static void start_child(apr_pool_t *pool, server_rec *server)
{
    agent_child_t *child = apr_pcalloc(pool, sizeof(*child));
    apr_status_t rv;

    own_generation = ap_get_scoreboard_global()->running_generation;
    child->config = agent_config_server(server);
    child->wake_fd = agent_daemon_child_init(server);
    if (child->config->graphs->nelts == 0) {
        return;
    }
    agent_heap_start();
    child->logged = apr_pcalloc(pool, sizeof(*child->logged));
    child->graph_names = agent_config_graph_names(child->config, pool);
    rv = init_child(child, server, pool);
    if (rv != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_CRIT, rv, server,
                     AGENT_LOGNO(0408) "a child could not be set up: it "
                                       "answers 503");
        return;
    }
    current_child = child;
    check_database(child, server, pool);
}

static void stop_child(apr_pool_t *pool, int graceful)
{
    if (current_child != NULL) {
        agent_waits_stop(
            current_child->waits,
            graceful ? agent_config_drain_timeout(current_child->config) : 0);
    }
}

static void register_hooks(apr_pool_t *pool)
{
    /* mod_dbd makes its pools in its own child_init. */
    static const char *const after_dbd[] = {"mod_dbd.c", NULL};

    ap_hook_check_config(check_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_post_config(start_supervisor, NULL, NULL, APR_HOOK_LAST);
    ap_hook_monitor(agent_daemon_monitor, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_map_to_storage(skip_files, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_child_init(start_child, after_dbd, NULL, APR_HOOK_MIDDLE);
    ap_hook_child_stopping(stop_child, NULL, NULL, APR_HOOK_MIDDLE);
    agent_park_register(pool);
    agent_server_error_register(handler_name);
    agent_body_register();
    ap_hook_handler(handle_request, NULL, NULL, APR_HOOK_MIDDLE);
}

module AP_MODULE_DECLARE_DATA agent_module = {STANDARD20_MODULE_STUFF,
                                              agent_config_create_dir,
                                              agent_config_merge_dir,
                                              agent_config_create_server,
                                              agent_config_merge_server,
                                              agent_directives,
                                              register_hooks,
                                              AP_MODULE_FLAG_NONE};
