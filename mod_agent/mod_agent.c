/* SPDX-License-Identifier: Apache-2.0 */
/* mod_agent, the LangGraph deployment API on PostgreSQL: the module's record
 * and its hooks. */
#include <apr_strings.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>
#include <mpm_common.h>

#include "auth/admission.h"
#include "auth/child_state.h"
#include "auth/deployment_path.h"
#include "auth/key_region.h"
#include "auth/provider.h"
#include "auth/require.h"
#include "child.h"
#include "config/capacity.h"
#include "config/dbd.h"
#include "config/directives.h"
#include "config/exclusion.h"
#include "config/graph.h"
#include "config/host.h"
#include "config/location.h"
#include "config/published_address.h"
#include "config/region.h"
#include "config/unused_directive.h"
#include "core/version.h"
#include "daemon.h"
#include "handlers/handlers.h"
#include "http/body.h"
#include "http/browser.h"
#include "http/header_size.h"
#include "http/problem.h"
#include "http/response.h"
#include "http/router.h"
#include "http/server_error.h"
#include "pools.h"
#include "private.h"
#include "startup.h"
#include "wait/park.h"

static int respond(agent_call_t *call)
{
    if (call->err != NULL || call->renew(call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    if (agent_browser_is_preflight(call)) {
        return agent_response_empty(call, HTTP_NO_CONTENT);
    }
    return agent_router_dispatch(call);
}

/* Called when the body is complete. */
static int dispatch(agent_call_t *call)
{
    int result = respond(call);

    /* It waits for its client, or for a run. */
    if (result == SUSPENDED) {
        agent_body_release(call);
    }
    return result;
}

/* Any client can send requests to a platform host: it does not read a body that
 * no route needs. */
static int respond_at_once(agent_call_t *call)
{
    agent_body_skip(call->r);
    return respond(call);
}

static int handle_request(request_rec *r)
{
    const agent_api_t *api = agent_router_find(r->handler);
    const agent_child_t *child = agent_child_state_get();
    agent_call_t *call;

    if (api == NULL) {
        return DECLINED;
    }
    if (child == NULL || (api->needs_waiters && child->waiters == NULL)) {
        return HTTP_SERVICE_UNAVAILABLE;
    }
    /* In the pool: a request that waits outlives this function. */
    call = apr_pcalloc(r->pool, sizeof(*call));
    call->r = r;
    call->pool = r->pool;
    call->child = child;
    call->api = api;
    call->dir = agent_location_dir(r);
    call->db = child->db;
    call->renew = agent_admission_renew;
    if (agent_header_size_check(call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_router_match(call);
    /* The browser check's refusal is sent after the body has arrived: otherwise
     * httpd would block a thread to read the body. */
    if (agent_browser_check(call) == APR_SUCCESS
        && agent_admission_check(call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    if (api->is_platform && call->match.route == NULL) {
        return respond_at_once(call);
    }
    return agent_body_receive(call, dispatch);
}

/* Skips httpd's lookup below the document root, which takes five system calls,
 * for paths of an API, which are not files. A path that mod_proxy takes is left
 * to its hook, which applies <Proxy>. */
static int skip_files(request_rec *r)
{
    ap_conf_vector_t *config = r->per_dir_config;
    const agent_api_t *api;

    /* Before this hook httpd resets the location for <Directory>, and walks the
     * locations again after it; the walk's result is cached. */
    ap_location_walk(r);
    api = agent_router_of(r);
    r->per_dir_config = config;
    return api != NULL ? OK : DECLINED;
}

static int refuse_start(server_rec *server, const char *text)
{
    ap_log_error(APLOG_MARK, APLOG_EMERG, 0, server, AGENT_LOGNO(0405) "%s",
                 text);
    return HTTP_INTERNAL_SERVER_ERROR;
}

/* The file needs any execute bit: whether the runner's user may execute it is
 * checked by the spawner. */
#define EXECUTE_BITS                                                           \
    (APR_FPROT_UEXECUTE | APR_FPROT_GEXECUTE | APR_FPROT_WEXECUTE)

static int check_runner(const char *path, server_rec *server, apr_pool_t *ptemp)
{
    apr_finfo_t info;
    apr_status_t rv = apr_stat(&info, path, APR_FINFO_TYPE | APR_FINFO_PROT,
                               ptemp);
    char reason[120];

    if (rv == APR_SUCCESS && info.filetype == APR_REG
        && (info.protection & EXECUTE_BITS) != 0) {
        return OK;
    }
    return refuse_start(
        server,
        apr_psprintf(ptemp,
                     "AgentRunner: expected the path of the program "
                     "agent-runner, got '%s' (%s)",
                     path,
                     rv == APR_SUCCESS
                         ? info.filetype == APR_REG ? "not executable"
                                                    : "not a file"
                         : apr_strerror(rv, reason, sizeof(reason))));
}

static bool is_first_pass(void)
{
    return ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG;
}

static void warn(const agent_server_config_t *config, server_rec *server,
                 apr_pool_t *ptemp)
{
    agent_unused_directive_check(config, server, ptemp);
    agent_exclusion_warn(server, ptemp);
    agent_region_warn(config, server, ptemp);
    agent_published_address_warn(config, server, ptemp);
    agent_runner_settings_warn(config, server);
}

/* Checks that span directives; also part of `httpd -t`. Warnings go to the
 * terminal; the second pass of a start has none, nor an error log yet. */
static int check_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp,
                        server_rec *server)
{
    agent_server_config_t *config = agent_config_server(server);
    const char *problem = agent_graph_assign(config, pconf);

    agent_host_find_handlers(config, server, pconf);
    if (problem == NULL) {
        problem = agent_directive_check_webhooks(config, pconf);
    }
    if (problem == NULL) {
        problem = agent_runner_settings_check(config, pconf);
    }
    if (problem == NULL) {
        problem = agent_exclusion_check(ptemp);
    }
    if (problem != NULL) {
        return refuse_start(server, problem);
    }
    if (is_first_pass()) {
        warn(config, server, ptemp);
    }
    if (config->graphs->nelts == 0) {
        return OK;
    }
    problem = agent_dbd_check(config, ptemp);
    if (problem != NULL) {
        return refuse_start(server, problem);
    }
    if (check_runner(agent_config_runner(config), server, ptemp) != OK) {
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    return agent_pools_check(config, server, ptemp)
        ? OK
        : HTTP_INTERNAL_SERVER_ERROR;
}

/* Called at the first of the two times that the configuration is read at start,
 * before httpd leaves its terminal. Not at a restart, where a failure would
 * stop all sites of the server: requests get 503 then if the database is of
 * another region. */
static int check_database(const agent_server_config_t *config,
                          server_rec *server, apr_pool_t *pool)
{
    return agent_dbd_check(config, pool) != NULL
            || agent_startup_check(config, agent_dbd_conninfo(config, pool),
                                   server, pool)
        ? OK
        : HTTP_INTERNAL_SERVER_ERROR;
}

static int start_daemon(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp,
                        server_rec *server)
{
    agent_server_config_t *config = agent_config_server(server);
    apr_status_t rv;

    if (ap_state_query(AP_SQ_RUN_MODE) != AP_SQ_RM_NORMAL) {
        return OK;
    }
    if (is_first_pass()) {
        return check_database(config, server, ptemp);
    }
    warn(config, server, ptemp);
    if (!agent_host_is_any(config) || agent_dbd_check(config, ptemp) != NULL) {
        return OK;
    }
    agent_capacity_check(config, server);
    ap_add_version_component(pconf, "mod_agent/" AGENT_VERSION);
    rv = agent_daemon_start(config, agent_dbd_conninfo(config, pconf), server,
                            pconf);
    if (rv != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_EMERG, rv, server,
                     AGENT_LOGNO(0406) "the supervisor could not be set up");
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    return OK;
}

static void start_child(apr_pool_t *pool, server_rec *server)
{
    agent_child_state_set(agent_child_start(server, pool));
}

static void stop_child(apr_pool_t *pool, int graceful)
{
    const agent_child_t *child = agent_child_state_get();

    if (child != NULL) {
        agent_child_stop(child, graceful != 0);
    }
}

static void register_hooks(apr_pool_t *pool)
{
    /* mod_dbd creates its pools in its own child_init. */
    static const char *const after_dbd[] = {"mod_dbd.c", NULL};

    ap_hook_check_config(check_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_post_config(start_daemon, NULL, NULL, APR_HOOK_LAST);
    ap_hook_monitor(agent_daemon_monitor, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_error_log(agent_daemon_check_stop, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_map_to_storage(skip_files, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_child_init(start_child, after_dbd, NULL, APR_HOOK_MIDDLE);
    ap_hook_child_stopping(stop_child, NULL, NULL, APR_HOOK_MIDDLE);
    agent_provider_register();
    agent_key_region_register();
    agent_deployment_path_register();
    agent_require_register(pool);
    agent_park_register(pool);
    agent_router_register(agent_apis);
    agent_server_error_register();
    agent_body_register();
    ap_hook_handler(handle_request, NULL, NULL, APR_HOOK_MIDDLE);
}

module AP_MODULE_DECLARE_DATA agent_module = {STANDARD20_MODULE_STUFF,
                                              agent_location_create_dir,
                                              agent_location_merge_dir,
                                              agent_config_create_server,
                                              agent_config_merge_server,
                                              agent_directives,
                                              register_hooks,
                                              AP_MODULE_FLAG_NONE};
