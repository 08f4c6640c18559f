/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mod_ratelimit_regional: a table of request limits per region. The module
 * record and its hooks. Each request is admitted or refused once, after its
 * headers are read and mod_remoteip has set the client's address; a refused one
 * is answered before any other handler runs.
 */
#include <apr_strings.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>

#include "config/config.h"
#include "config/directives.h"
#include "config/dump.h"
#include "config/summary.h"
#include "config/vhost_warn.h"
#include "config/vhosts.h"
#include "counter/walk.h"
#include "decision/decide.h"
#include "decision/response.h"
#include "decision/upgrade.h"
#include "private.h"
#include "rules/sha256.h"
#include "shm.h"
#include "status/handler.h"
#include "store/worker.h"

/* ---- Requests ---- */

static rlr_decision_t *find_decision(const request_rec *r)
{
    return ap_get_module_config(r->request_config, &ratelimit_regional_module);
}

static void keep_decision(request_rec *r, rlr_decision_t *decision)
{
    ap_set_module_config(r->request_config, &ratelimit_regional_module,
                         decision);
    rlr_response_set_environment(r, decision);
    rlr_response_add_headers(r, decision);
}

/* Internal redirects run this hook again and keep the decision. */
static int decide_request(request_rec *r)
{
    const rlr_vhost_t *vhost = rlr_config_get(r->server)->vhost;
    rlr_decision_t *decision;
    rlr_subject_t subject;

    if (vhost == NULL || r->main != NULL) {
        return DECLINED;
    }
    if (r->prev != NULL) {
        if (find_decision(r->prev) != NULL) {
            keep_decision(r, find_decision(r->prev));
        }
        return DECLINED;
    }
    decision = apr_palloc(r->pool, sizeof(*decision));
    rlr_subject_read(&subject, vhost, r);
    if (!rlr_upgrade_take(decision, r, vhost, &subject)) {
        rlr_decide_admit(decision, vhost, &subject, r->useragent_addr);
        rlr_upgrade_remember(r, decision, &subject);
        rlr_response_log(r, decision, &subject);
    }
    keep_decision(r, decision);
    return DECLINED;
}

/* Not in decide_request(): an error from post_read_request closes the
 * connection, and each refused request would need a new one. */
static int refuse_request(request_rec *r, int lookup)
{
    rlr_decision_t *decision = find_decision(r);

    if (lookup || r->prev != NULL || decision == NULL
        || decision->outcome != RLR_REFUSED) {
        return DECLINED;
    }
    if (!rlr_response_is_for_status(r, decision)) {
        return rlr_response_refuse(r, decision);
    }
    decision->for_status = true;
    rlr_response_set_outcome(r, RLR_EXEMPT);
    return DECLINED;
}

/* Whether this is an error document, part of a request that httpd has
 * rejected. */
static bool is_error_document(const request_rec *r)
{
    return r->prev != NULL && r->prev->status != HTTP_OK;
}

/* The first of all handlers; otherwise a ProxyPass of all paths would hide the
 * status page. Refuses requests that were let through to the status page but
 * were routed to another handler, for example by a rewrite. */
static int handle_request(request_rec *r)
{
    rlr_decision_t *decision = find_decision(r);
    int status = rlr_handler_run(r);

    if (status != DECLINED || decision == NULL || !decision->for_status
        || is_error_document(r)) {
        return status;
    }
    /* Once: not again for its own error document. */
    decision->for_status = false;
    rlr_response_set_outcome(r, RLR_REFUSED);
    return rlr_response_refuse(r, decision);
}

/* Error responses and files chosen by MultiViews start with new filters. */
static void add_headers(request_rec *r)
{
    const rlr_decision_t *decision = find_decision(r);

    if (decision != NULL) {
        rlr_response_add_headers(r, decision);
    }
}

/* ---- Start ---- */

static apr_status_t end_sha256(void *unused)
{
    rlr_sha256_end();
    return APR_SUCCESS;
}

/* Released with pconf: the module may be unloaded at a restart. */
static int begin_sha256(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp)
{
    if (!rlr_sha256_begin()) {
        ap_log_error(APLOG_MARK, APLOG_EMERG, 0, NULL,
                     RLR_LOGNO(0114) "libcrypto has no SHA-256: httpd does not "
                                     "start");
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    apr_pool_cleanup_register(pconf, NULL, end_sha256, apr_pool_cleanup_null);
    return OK;
}

/* Checks the configuration as a whole; also part of `httpd -t`. */
static int check_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp,
                        server_rec *server)
{
    const char *problem = rlr_vhost_build(server, pconf);

    if (problem != NULL) {
        ap_log_error(APLOG_MARK, APLOG_EMERG, 0, server, RLR_LOGNO(0101) "%s",
                     problem);
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    if (ap_state_query(AP_SQ_RUN_MODE) == AP_SQ_RM_CONFIG_TEST) {
        rlr_vhost_warn(server, ptemp);
    }
    return OK;
}

static int open_table(server_rec *server, apr_pool_t *pconf, apr_pool_t *ptemp)
{
    const apr_array_header_t *names = rlr_vhosts_row_names(server, ptemp);
    uint32_t *rows = apr_pcalloc(ptemp, (size_t)names->nelts * sizeof(*rows));
    int size = rlr_config_table_slots(rlr_config_get(server)->global);
    const rlr_table_t *table;

    if (rlr_shm_open(&table, rows, names, (uint32_t)size, server, pconf)
        != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_EMERG, 0, server,
                     RLR_LOGNO(0102) "nothing is limited without the shared "
                                     "table: httpd does not start");
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    rlr_vhosts_set_table(server, table, names, rows, ptemp);
    ap_log_error(
        APLOG_MARK, APLOG_NOTICE, 0, server,
        RLR_LOGNO(0103) "rate limits, regions %s: %d rules, slots "
                        "for %u keys",
        apr_array_pstrcat(ptemp, rlr_vhosts_regions(server, ptemp), ' '),
        rlr_config_get(server)->global->rules->nelts, rlr_walk_slots(table));
    return OK;
}

/* Without memory for it the counters would be those of one host. */
static int open_store(server_rec *server, apr_pool_t *pconf, apr_pool_t *ptemp)
{
    const rlr_global_t *global = rlr_config_get(server)->global;
    rlr_store_host_t host;
    rlr_store_t *store;
    rlr_shared_t shared;

    /* The memory from before the restart is kept for a configuration with a
     * store. */
    if (global->store.connection.address.count == 0) {
        return OK;
    }
    if (rlr_shm_open_shared(&shared, (uint32_t)rlr_config_table_slots(global),
                            server)
        != APR_SUCCESS) {
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    store = apr_palloc(pconf, sizeof(*store));
    host.name = rlr_summary_name_host(pconf);
    host.rules = rlr_summary_write(server, pconf);
    host.longest_sec = rlr_vhosts_longest_sec(server);
    rlr_store_init(store, &global->store, &shared, &host);
    rlr_store_use_store(store, ptemp);
    rlr_vhosts_set_store(server, store);
    rlr_worker_leave_at_end(store, server, pconf);
    return OK;
}

static int start(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp,
                 server_rec *server)
{
    /* The configuration is read twice at start, and once by `httpd -t`. */
    if (ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG
        || ap_state_query(AP_SQ_RUN_MODE) != AP_SQ_RM_NORMAL) {
        return OK;
    }
    rlr_vhost_warn(server, ptemp);
    if (rlr_vhosts_find(server, NULL) == NULL) {
        return OK;
    }
    ap_add_version_component(pconf, "mod_ratelimit_regional/" RLR_VERSION);
    return open_table(server, pconf, ptemp) == OK
        ? open_store(server, pconf, ptemp)
        : HTTP_INTERNAL_SERVER_ERROR;
}

static void start_child(apr_pool_t *pchild, server_rec *server)
{
    const rlr_vhost_t *vhost = rlr_vhosts_find(server, NULL);

    if (vhost != NULL && vhost->store != NULL) {
        rlr_store_t *store = apr_palloc(pchild, sizeof(*store));

        *store = *vhost->store;
        rlr_worker_start(store, server, pchild);
        rlr_vhosts_set_store(server, store);
    }
}

static void register_hooks(apr_pool_t *pool)
{
    /* They may change the address and the headers of the request. */
    static const char *const after[] = {"mod_remoteip.c", "mod_headers.c",
                                        "mod_setenvif.c", NULL};

    rlr_response_register();
    ap_hook_pre_config(begin_sha256, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_check_config(check_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_test_config(rlr_dump, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_post_config(start, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_child_init(start_child, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_post_read_request(decide_request, after, NULL, APR_HOOK_MIDDLE);
    ap_hook_quick_handler(refuse_request, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_insert_filter(add_headers, NULL, NULL, APR_HOOK_LAST);
    ap_hook_insert_error_filter(add_headers, NULL, NULL, APR_HOOK_LAST);
    ap_hook_handler(handle_request, NULL, NULL, APR_HOOK_REALLY_FIRST);
}

module AP_MODULE_DECLARE_DATA ratelimit_regional_module = {
    STANDARD20_MODULE_STUFF,
    NULL,
    NULL,
    rlr_config_create,
    rlr_config_merge,
    rlr_directives,
    register_hooks,
    AP_MODULE_FLAG_NONE};
