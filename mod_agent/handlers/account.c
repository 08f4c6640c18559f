/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/account and below: the account of the request's key. */
#include "handlers.h"

#include "../http/problem.h"
#include "../http/request.h"
#include "../http/response.h"
#include "../model/account.h"
#include "../stream/export.h"
#include "account_body.h"
#include "page_params.h"

/* ---- the account of the key ---- */

int agent_handle_account_get(agent_call_t *call)
{
    const char *body;

    if (agent_account_get(&body, call->db, call->identity->account_id,
                          &call->err, call->pool)
        != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, body);
}

int agent_handle_account_update(agent_call_t *call)
{
    agent_raw_t request;
    const char *body;

    if (agent_account_body_read(&request, call, AGENT_ACCOUNT_UPDATE)
            != APR_SUCCESS
        || agent_account_update(&body, call->db, call->identity->key_id,
                                request.text, &call->err, call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, body);
}

/* The deletion token. A repeated header has two, with a comma, which is
 * refused.
 */
static apr_status_t read_token(const char **token, agent_call_t *call)
{
    *token = apr_table_get(call->r->headers_in, "x-deletion-token");
    return agent_account_check_token(*token, &call->err, call->pool);
}

/* The deletion token that the client has chosen; NULL: none. */
static apr_status_t read_chosen_token(const char **token, agent_call_t *call)
{
    return apr_table_get(call->r->headers_in, "x-deletion-token") != NULL
        ? read_token(token, call)
        : APR_SUCCESS;
}

int agent_handle_account_delete(agent_call_t *call)
{
    agent_account_deletion_t deletion = {
        .key_id = call->identity->key_id,
        .log_days = agent_config_log_days(call->child->config),
        .backup_days = agent_config_backup_days(call->child->config)};
    agent_raw_t request;
    const char *body;

    if (read_chosen_token(&deletion.token, call) != APR_SUCCESS
        || agent_account_body_read(&request, call, AGENT_ACCOUNT_DELETE)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    deletion.request = request.text;
    if (agent_account_delete(&body, call->db, &deletion, &call->err, call->pool)
        != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_ACCEPTED, body);
}

/* All keys of the account are now invalid. */
int agent_handle_deletion_get(agent_call_t *call)
{
    const char *token = NULL;
    const char *body;

    if (read_token(&token, call) != APR_SUCCESS
        || agent_account_get_deletion(&body, call->db, token, &call->err,
                                      call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, body);
}

/* HEAD sends no rows: nothing is recorded. */
int agent_handle_account_export(agent_call_t *call)
{
    return call->r->header_only
            || agent_account_begin_export(call->db, call->identity->key_id,
                                          &call->err, call->pool)
                == APR_SUCCESS
        ? agent_export_respond(call)
        : agent_problem_send(call);
}

/* ---- usage and the audit log ---- */

static apr_status_t read_period(agent_account_period_t *period,
                                agent_call_t *call)
{
    static const char *const units[] = {"day", "hour", NULL};

    period->account_id = call->identity->account_id;
    period->unit = units[0];
    return agent_request_word(&period->unit, call, "unit", units) == APR_SUCCESS
            && agent_request_text(&period->start, call, "start", 40)
                == APR_SUCCESS
            && agent_request_text(&period->end, call, "end", 40) == APR_SUCCESS
        ? agent_request_text(&period->deployment, call, "deployment", 63)
        : APR_EGENERAL;
}

int agent_handle_usage_get(agent_call_t *call)
{
    agent_account_period_t period = {0};
    agent_page_t page = {0};

    if (read_period(&period, call) != APR_SUCCESS
        || agent_account_usage(&page, call->db, &period, &call->err, call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_response_set_next(call, page.next);
    return agent_response_json(call, HTTP_OK, page.body);
}

int agent_handle_audit_list(agent_call_t *call)
{
    agent_account_part_t part;
    agent_page_t page = {0};

    if (agent_page_params_read(&part, call, "before") != APR_SUCCESS
        || agent_page_params_check_number(&part, call, "before") != APR_SUCCESS
        || agent_account_audit(&page, call->db, &part, &call->err, call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_response_set_next(call, page.next);
    return agent_response_json(call, HTTP_OK, page.body);
}
