/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps method and path to a handler; see router.h. Reads r->uri, never
 * r->filename, and compares the method's text, because httpd gives HEAD the
 * number of GET.
 */
#include "router.h"

#include <stddef.h>
#include <string.h>

#include <apr_strings.h>

#include "../core/uuid.h"
#include "problem.h"
#include "request.h"
#include "response.h"

/* Longest path that an error's detail repeats. */
#define MOST_ECHOED 128

/* Where the UUID of a path parameter goes. */
static const struct {
    const char *name;
    size_t offset;
} params[] = {{"{thread_id}", offsetof(agent_call_t, ref.thread_id)},
              {"{run_id}", offsetof(agent_call_t, ref.run_id)},
              {"{checkpoint_id}", offsetof(agent_call_t, checkpoint_id)}};

/* Reads the UUID at path into the parameter at pattern. Returns the length of
 * the parameter's name; 0: not a UUID, or an unknown name. */
static size_t read_param(agent_call_t *call, const char *pattern,
                         const char *path)
{
    char text[AGENT_UUID_SIZE];
    char id[AGENT_UUID_SIZE];

    apr_cpystrn(text, path, sizeof(text));
    for (size_t i = 0; i < sizeof(params) / sizeof(params[0]); i++) {
        size_t length = strlen(params[i].name);

        if (strncmp(pattern, params[i].name, length) == 0
            && agent_uuid_parse(id, text)) {
            *(const char **)((char *)call
                             + params[i].offset) = apr_pstrdup(call->pool, id);
            return length;
        }
    }
    return 0;
}

static bool match_path(agent_call_t *call, const char *pattern,
                       const char *path)
{
    while (*pattern != '\0' && *path != '\0') {
        if (*pattern == '{') {
            size_t length = read_param(call, pattern, path);

            if (length == 0) {
                return false;
            }
            pattern += length;
            path += AGENT_UUID_SIZE - 1;
        }
        else if (*pattern++ != *path++) {
            return false;
        }
    }
    return *pattern == '\0' && *path == '\0';
}

/* The path after AgentPrefix; NULL when it does not begin with that. */
static const char *strip_prefix(const agent_call_t *call)
{
    const char *prefix = agent_config_prefix(call->dir);
    size_t length = strlen(prefix);

    return strncmp(call->r->uri, prefix, length) == 0 ? call->r->uri + length
                                                      : NULL;
}

static bool match_method(const char *method, const char *offered)
{
    return strcmp(method, offered) == 0
        || (strcmp(method, "HEAD") == 0 && strcmp(offered, "GET") == 0);
}

/* True for a short text of characters that are safe in an error's detail. */
static bool is_plain(const char *text)
{
    size_t length = strspn(
        text,
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
        "0123456789/_-.");

    return text[length] == '\0' && length <= MOST_ECHOED;
}

/* Method and path for an error's detail; NULL if they are not plain. */
static const char *name_operation(const agent_call_t *call)
{
    return is_plain(call->r->method) && is_plain(call->r->uri)
        ? apr_pstrcat(call->pool, call->r->method, " ", call->r->uri, NULL)
        : NULL;
}

static int send_method_error(agent_call_t *call, const char *allow)
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

/* path NULL: outside AgentPrefix. */
static int send_not_found(agent_call_t *call, const char *path)
{
    const char *name = name_operation(call);
    const char *detail = name != NULL
        ? apr_pstrcat(call->pool, "This server has no ", name, ".", NULL)
        : NULL;

    if (path != NULL && (*path == '\0' || strcmp(path, "/") == 0)) {
        detail = "This is an API without pages: GET /ok and /info show that it "
                 "works.";
    }
    agent_error_set(&call->err, AGENT_E_NOT_FOUND, detail, NULL, call->pool);
    return agent_problem_send(call);
}

/* Frees the query string after the handler: a parked request needs none of it.
 */
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
        if (!match_path(call, routes->path, path)) {
            continue;
        }
        if (match_method(call->r->method, routes->method)) {
            return call_handler(call, routes->handle);
        }
        allow = apr_pstrcat(
            call->pool, allow ? allow : "", allow ? ", " : "", routes->method,
            strcmp(routes->method, "GET") == 0 ? ", HEAD" : "", NULL);
    }
    return allow != NULL ? send_method_error(call, allow)
                         : send_not_found(call, path);
}
