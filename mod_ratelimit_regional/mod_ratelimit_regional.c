/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mod_ratelimit_regional: a published table of request limits per region.
 *
 * The module's record and its hooks; the decision is limit.c's. A request is
 * decided on once, as soon as its headers are read and mod_remoteip has found
 * the client's address, and refused before anything else handles it.
 */
#include <apr_strings.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>

#include "decision/response.h"
#include "config/config.h"
#include "rules/digest.h"
#include "config/directives.h"
#include "config/dump.h"
#include "decision/decide.h"
#include "private.h"
#include "shm.h"
#include "status/status.h"
#include "counter/walk.h"
#include "decision/upgrade.h"

/* ---- Requests ---- */

static rlr_verdict_t *find_verdict(const request_rec *r)
{
    return ap_get_module_config(r->request_config, &ratelimit_regional_module);
}

static void keep_verdict(request_rec *r, rlr_verdict_t *verdict)
{
    ap_set_module_config(r->request_config, &ratelimit_regional_module,
                         verdict);
    rlr_answer_note(r, verdict);
    rlr_answer_promise(r, verdict);
}

/* Internal redirects come by again: what was decided holds for them. */
static int decide_request(request_rec *r)
{
    const rlr_site_t *site = rlr_config_get(r->server)->site;
    rlr_verdict_t *verdict;
    rlr_subject_t subject;

    if (site == NULL || r->main != NULL) {
        return DECLINED;
    }
    if (r->prev != NULL) {
        if (find_verdict(r->prev) != NULL) {
            keep_verdict(r, find_verdict(r->prev));
        }
        return DECLINED;
    }
    verdict = apr_palloc(r->pool, sizeof(*verdict));
    rlr_subject_read(&subject, site, r);
    if (!rlr_upgrade_take(verdict, r, site, &subject)) {
        rlr_limit_decide(verdict, site, &subject, r->useragent_addr);
        rlr_upgrade_note(r, verdict, &subject);
        rlr_answer_log(r, verdict, &subject);
    }
    keep_verdict(r, verdict);
    return DECLINED;
}

/*
 * Not in decide_request: an error from post_read_request ends the connection,
 * and a client that is refused once a second would connect once a second.
 */
static int refuse_request(request_rec *r, int lookup)
{
    rlr_verdict_t *verdict = find_verdict(r);

    if (lookup || r->prev != NULL || verdict == NULL
        || verdict->outcome != RLR_REFUSED) {
        return DECLINED;
    }
    verdict->for_status = rlr_answer_is_for_status(r, verdict);
    return verdict->for_status ? DECLINED : rlr_answer_refuse(r, verdict);
}

/* An error document is part of a request that httpd has refused by itself. */
static bool is_error_document(const request_rec *r)
{
    return r->prev != NULL && r->prev->status != HTTP_OK;
}

/*
 * Before all others, or ProxyPass of the whole site would take the status page.
 * What was let through for its sake and has come to another handler all the
 * same, by a rewrite for example, is refused here.
 */
static int handle_request(request_rec *r)
{
    rlr_verdict_t *verdict = find_verdict(r);
    int status = rlr_status_handle(r);

    if (status != DECLINED || verdict == NULL || !verdict->for_status
        || is_error_document(r)) {
        return status;
    }
    /* Once: not again by its own error document. */
    verdict->for_status = false;
    apr_table_setn(r->subprocess_env, "RATELIMIT_DECISION",
                   rlr_outcome_word(RLR_REFUSED));
    return rlr_answer_refuse(r, verdict);
}

/* An error response begins with new filters, and so does a file that httpd has
 * chosen in place of the one that was asked for (MultiViews). */
static void keep_promise(request_rec *r)
{
    const rlr_verdict_t *verdict = find_verdict(r);

    if (verdict != NULL) {
        rlr_answer_promise(r, verdict);
    }
}

/* ---- Start ---- */

static apr_status_t end_digests(void *unused)
{
    rlr_digest_end();
    return APR_SUCCESS;
}

/* This library may be unloaded at a restart; what it has of libcrypto goes
 * first. */
static int begin_digests(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp)
{
    if (!rlr_digest_begin()) {
        ap_log_error(APLOG_MARK, APLOG_EMERG, 0, NULL,
                     RLR_LOGNO(0114) "libcrypto has no SHA-256: httpd does not "
                                     "start");
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    apr_pool_cleanup_register(pconf, NULL, end_digests, apr_pool_cleanup_null);
    return OK;
}

/* What no single directive can see; also part of `httpd -t`. */
static int check_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp,
                        server_rec *server)
{
    const char *problem = rlr_site_build(server, pconf);

    if (problem != NULL) {
        ap_log_error(APLOG_MARK, APLOG_EMERG, 0, server, RLR_LOGNO(0101) "%s",
                     problem);
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    if (ap_state_query(AP_SQ_RUN_MODE) == AP_SQ_RM_CONFIG_TEST) {
        rlr_site_warn(server, ptemp);
    }
    return OK;
}

static int open_table(server_rec *server, apr_pool_t *pconf, apr_pool_t *ptemp)
{
    const apr_array_header_t *names = rlr_site_slot_names(server, ptemp);
    uint32_t *slots = apr_pcalloc(ptemp, (size_t)names->nelts * sizeof(*slots));
    int size = rlr_config_table_slots(rlr_config_get(server)->global);
    const rlr_table_t *table;

    if (rlr_segment_open(&table, slots, names, (uint32_t)size, server, pconf)
        != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_EMERG, 0, server,
                     RLR_LOGNO(0102) "without its table nothing is limited: "
                                     "httpd does not start");
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    rlr_site_set_table(server, table, names, slots, ptemp);
    ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, server,
                 RLR_LOGNO(0103) "rate limits, regions %s: %d rules, places "
                                 "for %u keys",
                 apr_array_pstrcat(ptemp, rlr_site_regions(server, ptemp), ' '),
                 rlr_config_get(server)->global->rules->nelts,
                 rlr_table_places(table));
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
    rlr_site_warn(server, ptemp);
    if (rlr_site_find(server, NULL) == NULL) {
        return OK;
    }
    ap_add_version_component(pconf, "mod_ratelimit_regional/" RLR_VERSION);
    return open_table(server, pconf, ptemp);
}

static void register_hooks(apr_pool_t *pool)
{
    /* They may change the address and the headers that are looked at. */
    static const char *const after[] = {"mod_remoteip.c", "mod_headers.c",
                                        "mod_setenvif.c", NULL};

    rlr_answer_register();
    ap_hook_pre_config(begin_digests, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_check_config(check_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_test_config(rlr_dump, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_post_config(start, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_post_read_request(decide_request, after, NULL, APR_HOOK_MIDDLE);
    ap_hook_quick_handler(refuse_request, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_insert_filter(keep_promise, NULL, NULL, APR_HOOK_LAST);
    ap_hook_insert_error_filter(keep_promise, NULL, NULL, APR_HOOK_LAST);
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
