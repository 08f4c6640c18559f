/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From method and path to a handler; see router.h. Works on r->uri, never on
 * r->filename, and compares the method's text: httpd gives HEAD the number of
 * GET.
 */
#include "router.h"

#include <string.h>

#include <apr_strings.h>

#include "../core/uuid.h"
#include "problem.h"
#include "request.h"
#include "response.h"

/* Of a path in an answer. */
#define MOST_ECHOED 128

/* True when path fits the pattern; its UUIDs go to ids. */
static bool match_path(const char *ids[AGENT_MAX_PARAMS], const char *pattern,
                       const char *path, apr_pool_t *pool)
{
    int count = 1;

    while (*pattern != '\0' && *path != '\0') {
        if (strncmp(pattern, "{id}", 4) == 0) {
            char id[AGENT_UUID_SIZE];
            char text[AGENT_UUID_SIZE];

            apr_cpystrn(text, path, sizeof(text));
            if (!agent_uuid_parse(id, text)) {
                return false;
            }
            ids[count++] = apr_pstrdup(pool, id);
            pattern += 4;
            path += AGENT_UUID_SIZE - 1;
        }
        else if (*pattern++ != *path++) {
            return false;
        }
    }
    return *pattern == '\0' && *path == '\0';
}

/* The path below the prefix; NULL when the request is not below it. */
static const char *strip_prefix(const agent_call_t *call)
{
    const char *prefix = agent_config_prefix(call->dir);
    size_t length = strlen(prefix);

    return strncmp(call->r->uri, prefix, length) == 0 ? call->r->uri + length
                                                      : NULL;
}

static bool fits_method(const char *asked, const char *offered)
{
    return strcmp(asked, offered) == 0
        || (strcmp(asked, "HEAD") == 0 && strcmp(offered, "GET") == 0);
}

/* Short, and of characters that need no care in a text. */
static bool is_plain(const char *text)
{
    size_t length = strspn(
        text,
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
        "0123456789/_-.");

    return text[length] == '\0' && length <= MOST_ECHOED;
}

/* What the server does not have; NULL: in an odd notation. */
static const char *name_operation(const agent_call_t *call)
{
    return is_plain(call->r->method) && is_plain(call->r->uri)
        ? apr_pstrcat(call->pool, call->r->method, " ", call->r->uri, NULL)
        : NULL;
}

static int answer_method(agent_call_t *call, const char *allow)
{
    const char *name = name_operation(call);

    apr_table_setn(call->r->err_headers_out, "Allow",
                   apr_pstrcat(call->pool, allow, ", OPTIONS", NULL));
    if (strcmp(call->r->method, "OPTIONS") == 0) {
        return agent_response_empty(call, HTTP_NO_CONTENT);
    }
    agent_error_set(&call->err, AGENT_E_METHOD,
                    name != NULL
                        ? apr_pstrcat(call->pool, "This server has no ", name,
                                      ", only ", allow, ".", NULL)
                        : NULL,
                    NULL, call->pool);
    return agent_problem_send(call);
}

/* path NULL: not below the prefix. */
static int answer_not_found(agent_call_t *call, const char *path)
{
    const char *name = name_operation(call);
    const char *detail = name != NULL
        ? apr_pstrcat(call->pool, "This server has no ", name, ".", NULL)
        : NULL;

    if (path != NULL && (*path == '\0' || strcmp(path, "/") == 0)) {
        detail = "This is an API without pages: GET /ok and /info say that it "
                 "is there.";
    }
    agent_error_set(&call->err, AGENT_E_NOT_FOUND, detail, NULL, call->pool);
    return agent_problem_send(call);
}

/* A request that is parked after this keeps nothing of its query string. */
static int call_handler(agent_call_t *call, agent_handler_t handle)
{
    int result = agent_request_query(call) == APR_SUCCESS
        ? handle(call)
        : agent_problem_send(call);

    agent_request_drop_query(call);
    return result;
}

int agent_router_dispatch(agent_call_t *call, const agent_route_t *routes)
{
    const char *path = strip_prefix(call);
    const char *allow = NULL;

    /* Bounded: the methods of one path. */
    for (; path != NULL && routes->method != NULL; routes++) {
        if (!match_path(call->ids, routes->path, path, call->pool)) {
            continue;
        }
        if (fits_method(call->r->method, routes->method)) {
            return call_handler(call, routes->handle);
        }
        allow = apr_pstrcat(
            call->pool, allow ? allow : "", allow ? ", " : "", routes->method,
            strcmp(routes->method, "GET") == 0 ? ", HEAD" : "", NULL);
    }
    return allow != NULL ? answer_method(call, allow)
                         : answer_not_found(call, path);
}
