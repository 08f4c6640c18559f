/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps handler name, method and path to an endpoint; see router.h. Reads
 * r->uri, never r->filename, and compares the method's text, because httpd
 * gives HEAD the number of GET.
 */
#include "router.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include <apr_strings.h>

#include "../core/uuid.h"
#include "problem.h"
#include "request.h"
#include "response.h"

/* Longest path that an error's detail quotes. */
#define MOST_ECHOED 128

/* Set when the hooks are registered. */
static const agent_api_t *all_apis;

/* A parameter of a path, and where its value goes. */
typedef struct param_t {
    const char *name;
    size_t offset;
    /* Returns the value of a segment, in pool; NULL: the segment is not valid.
     */
    const char *(*read)(const char *segment, apr_pool_t *pool);
} param_t;

static const char *read_uuid(const char *segment, apr_pool_t *pool)
{
    char id[AGENT_UUID_SIZE];

    return agent_uuid_parse(id, segment) ? apr_pstrdup(pool, id) : NULL;
}

/* A UUID, or the name of a graph, which stands for the graph's system
 * assistant. */
static const char *read_assistant(const char *segment, apr_pool_t *pool)
{
    char id[AGENT_UUID_SIZE];

    if (!agent_uuid_parse(id, segment)) {
        agent_uuid_v5(id, segment);
    }
    return apr_pstrdup(pool, id);
}

static const char *read_text(const char *segment, apr_pool_t *pool)
{
    return apr_pstrdup(pool, segment);
}

static const param_t params[] = {
    {"thread_id", offsetof(agent_call_t, ref.thread_id), read_uuid},
    {"run_id", offsetof(agent_call_t, ref.run_id), read_uuid},
    {"checkpoint_id", offsetof(agent_call_t, checkpoint_id), read_uuid},
    {"assistant_id", offsetof(agent_call_t, assistant_id), read_assistant},
    {"namespace", offsetof(agent_call_t, namespace), read_text},
    {"key_id", offsetof(agent_call_t, key_id), read_text}};

/* The parameter of a pattern like "{run_id}/join"; NULL: an unknown name. */
static const param_t *find_param(const char *pattern)
{
    for (size_t i = 0; i < sizeof(params) / sizeof(params[0]); i++) {
        size_t length = strlen(params[i].name);

        if (strncmp(pattern + 1, params[i].name, length) == 0
            && pattern[length + 1] == '}') {
            return &params[i];
        }
    }
    return NULL;
}

/* Sets the parameter to the value of the segment; false: it is not valid. */
static bool read_param(agent_call_t *call, const param_t *param,
                       const char *segment, size_t length, apr_pool_t *pool)
{
    const char *value = param->read(apr_pstrmemdup(pool, segment, length),
                                    pool);

    if (call != NULL) {
        *(const char **)((char *)call + param->offset) = value;
    }
    return value != NULL;
}

/* *not_uuid: the name of a parameter whose segment is not a UUID, else NULL.
 * call NULL: the parameters are only checked. */
static bool match_path(const char **not_uuid, agent_call_t *call,
                       const char *pattern, const char *path, apr_pool_t *pool)
{
    *not_uuid = NULL;
    while (*pattern != '\0' && *path != '\0') {
        if (*pattern == '{') {
            const param_t *param = find_param(pattern);
            size_t length = strcspn(path, "/");

            if (param == NULL || (length == 0 && param->read != read_uuid)) {
                return false;
            }
            if (!read_param(call, param, path, length, pool)) {
                *not_uuid = param->name;
            }
            pattern += strlen(param->name) + 2;
            path += length;
        }
        else if (*pattern++ != *path++) {
            return false;
        }
    }
    return *pattern == '\0' && *path == '\0';
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

/* Whether the client asks for a WebSocket, as those of the event protocol do.
 */
static bool wants_websocket(const request_rec *r)
{
    const char *upgrade = apr_table_get(r->headers_in, "Upgrade");

    return upgrade != NULL && strcasecmp(upgrade, "websocket") == 0;
}

/* path NULL: outside AgentPrefix. not_uuid: the name of a parameter, or NULL.
 */
static int send_not_found(agent_call_t *call, const char *path,
                          const char *not_uuid)
{
    const char *name = name_operation(call);
    const char *detail = name != NULL
        ? apr_pstrcat(call->pool, "This server has no ", name,
                      not_uuid != NULL ? ": " : "",
                      not_uuid != NULL ? not_uuid : "",
                      not_uuid != NULL ? " must be a UUID." : ".", NULL)
        : NULL;

    if (path != NULL && (*path == '\0' || strcmp(path, "/") == 0)) {
        detail = "This is an API without pages: GET /ok and /info show that it "
                 "works.";
    }
    if (wants_websocket(call->r)) {
        detail = "This server has no WebSockets: POST "
                 "/threads/{thread_id}/runs/stream answers with an event "
                 "stream.";
    }
    agent_error_set(&call->err, AGENT_E_NOT_FOUND, detail, NULL, call->pool);
    return agent_problem_send(call);
}

apr_status_t agent_router_set_deployment(agent_call_t *call)
{
    return call->ref.deployment_id != NULL
        ? APR_SUCCESS
        : agent_served_deployment_declare(
            &call->ref.deployment_id, call->child->deployments, call->db,
            agent_location_deployment(call->dir), &call->err, call->pool);
}

/* Frees the query string after the handler, since a parked request does not
 * need it. */
static int call_handler(agent_call_t *call, const agent_route_t *route)
{
    int result = agent_request_query(call) == APR_SUCCESS
            && (!route->has_data
                || agent_router_set_deployment(call) == APR_SUCCESS)
        ? route->handle(call)
        : agent_problem_send(call);

    agent_request_drop_query(call);
    return result;
}

void agent_router_register(const agent_api_t *apis)
{
    all_apis = apis;
}

const agent_api_t *agent_router_find(const char *handler)
{
    const agent_api_t *api = all_apis;

    if (handler == NULL) {
        return NULL;
    }
    while (api->handler != NULL && strcmp(api->handler, handler) != 0) {
        api++;
    }
    return api->handler != NULL ? api : NULL;
}

const agent_api_t *agent_router_of(request_rec *r)
{
    return r->proxyreq == PROXYREQ_NONE
        ? agent_router_find(agent_location_handler(r))
        : NULL;
}

const char *agent_router_path(const request_rec *r,
                              const agent_dir_config_t *dir)
{
    const char *prefix = agent_location_prefix(dir);
    size_t length = strlen(prefix);

    return strncmp(r->uri, prefix, length) == 0 ? r->uri + length : NULL;
}

/* "GET, HEAD", after those that the path has already. */
static const char *add_method(const char *allow, const char *method,
                              apr_pool_t *pool)
{
    return apr_pstrcat(pool, allow ? allow : "", allow ? ", " : "", method,
                       strcmp(method, "GET") == 0 ? ", HEAD" : "", NULL);
}

/* Sets match->route of a path, or what an error needs. call NULL: the
 * parameters are only checked. */
static void find_route(agent_match_t *match, agent_call_t *call,
                       const agent_route_t *routes, const request_rec *r)
{
    /* Bounded: the methods of one path. */
    for (; match->path != NULL && routes->method != NULL; routes++) {
        const char *name;

        if (!match_path(&name, call, routes->path, match->path, r->pool)) {
            continue;
        }
        if (match_method(r->method, routes->method)) {
            if (name == NULL) {
                match->route = routes;
                return;
            }
            match->not_uuid = name;
        }
        if (name == NULL) {
            match->allow = add_method(match->allow, routes->method, r->pool);
        }
    }
}

void agent_router_match(agent_call_t *call)
{
    call->match.path = agent_router_path(call->r, call->dir);
    find_route(&call->match, call, call->api->routes, call->r);
}

const agent_route_t *agent_router_route(request_rec *r)
{
    const agent_api_t *api = agent_router_of(r);
    agent_match_t match = {0};

    if (api != NULL) {
        match.path = agent_router_path(r, agent_location_dir(r));
        find_route(&match, NULL, api->routes, r);
    }
    return match.route;
}

int agent_router_dispatch(agent_call_t *call)
{
    const agent_match_t *match = &call->match;

    if (match->route != NULL) {
        return call_handler(call, match->route);
    }
    return match->allow != NULL
        ? send_method_error(call, match->allow)
        : send_not_found(call, match->path, match->not_uuid);
}
