/* SPDX-License-Identifier: Apache-2.0 */
/* Writes server-sent events; see sse.h. */
#include "sse.h"

#include <string.h>

#include <apr_strings.h>

#include "../http/request.h"
#include "../http/response.h"

/* From this size on a copy costs more than additional buckets. */
#define LARGE_BYTES (32 * 1024)

apr_status_t agent_sse_begin(agent_call_t *call)
{
    return agent_response_begin(call, "text/event-stream");
}

static void replace_line_ends(char *text, const char *end)
{
    for (; text < end; text++) {
        if (*text == '\n' || *text == '\r') {
            *text = ' ';
        }
    }
}

const char *agent_sse_one_line(const char *text, apr_pool_t *pool)
{
    char *copy;

    if (strpbrk(text, "\r\n") == NULL) {
        return text;
    }
    copy = apr_pstrdup(pool, text);
    replace_line_ends(copy, copy + strlen(copy));
    return copy;
}

const char *agent_sse_event(const char *id, const char *event, const char *data,
                            apr_pool_t *pool)
{
    char *text = apr_pstrcat(pool, "event: ", event, "\ndata: ", data,
                             id != NULL ? "\nid: " : "", id != NULL ? id : "",
                             "\n\n", NULL);
    char *end = text + strlen("event: ") + strlen(event) + strlen("\ndata: ")
        + strlen(data);

    replace_line_ends(end - strlen(data), end);
    return text;
}

void agent_sse_add(apr_array_header_t *texts, const char *id, const char *event,
                   const char *data, apr_pool_t *pool)
{
    if (strlen(data) < LARGE_BYTES || strpbrk(data, "\r\n") != NULL) {
        APR_ARRAY_PUSH(texts, const char *) = agent_sse_event(id, event, data,
                                                              pool);
        return;
    }
    APR_ARRAY_PUSH(texts, const char *) = apr_pstrcat(pool, "event: ", event,
                                                      "\ndata: ", NULL);
    APR_ARRAY_PUSH(texts, const char *) = data;
    APR_ARRAY_PUSH(texts, const char *) = apr_pstrcat(
        pool, id ? "\nid: " : "", id ? id : "", "\n\n", NULL);
}

void agent_sse_add_split(apr_array_header_t *texts, const char *id,
                         const char *event, const char *before,
                         const char *after, apr_pool_t *pool)
{
    APR_ARRAY_PUSH(texts, const char *) = apr_pstrcat(
        pool, "event: ", event, "\ndata: ", agent_sse_one_line(before, pool),
        NULL);
    APR_ARRAY_PUSH(texts, const char *) = apr_pstrcat(
        pool, agent_sse_one_line(after, pool), id ? "\nid: " : "", id ? id : "",
        "\n\n", NULL);
}

static bool has_large(const apr_array_header_t *texts)
{
    for (int i = 0; i < texts->nelts; i++) {
        if (strlen(APR_ARRAY_IDX(texts, i, const char *)) >= LARGE_BYTES) {
            return true;
        }
    }
    return false;
}

apr_status_t agent_sse_send(agent_call_t *call, apr_array_header_t *texts,
                            apr_pool_t *pool)
{
    if (texts->nelts == 0) {
        return APR_SUCCESS;
    }
    if (!has_large(texts)) {
        return agent_response_write(call, apr_array_pstrcat(pool, texts, 0));
    }
    APR_ARRAY_PUSH(texts, const char *) = NULL;
    return agent_response_write_parts(call, (const char *const *)texts->elts);
}

/* The mode that an event belongs to; NULL = none. */
static const char *find_mode(const char *event)
{
    static const struct {
        const char *event;
        const char *mode;
    } modes[] = {{"values", "values"},
                 {"updates", "updates"},
                 {"messages", "messages-tuple"},
                 {"messages/metadata", "messages"},
                 {"messages/partial", "messages"},
                 {"messages/complete", "messages"},
                 {"custom", "custom"},
                 {"debug", "debug"},
                 {"checkpoints", "checkpoints"},
                 {"tasks", "tasks"},
                 {"events", "events"},
                 {"tools", "tools"},
                 {"lifecycle", "lifecycle"}};
    size_t length = strcspn(event, "|");

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (strlen(modes[i].event) == length
            && strncmp(modes[i].event, event, length) == 0) {
            return modes[i].mode;
        }
    }
    return NULL;
}

static const char *find_namespace(const char *event)
{
    const char *bar = strchr(event, '|');

    return bar != NULL ? bar + 1 : "";
}

static bool contains(const char *const *list, const char *text)
{
    if (list == NULL) {
        return true;
    }
    while (*list != NULL && strcmp(*list, text) != 0) {
        list++;
    }
    return *list != NULL;
}

bool agent_sse_is_wanted(const char *const *modes,
                         const char *const *namespaces, const char *event)
{
    const char *mode = modes != NULL || namespaces != NULL ? find_mode(event)
                                                           : NULL;

    return mode == NULL
        || (contains(modes, mode)
            && contains(namespaces, find_namespace(event)));
}

apr_status_t agent_sse_read_cursor(apr_int64_t *after, agent_call_t *call)
{
    const char *text;
    char *end;
    apr_int64_t value;

    if (agent_request_identifier(&text, call, "Last-Event-ID", 20)
        != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    if (text == NULL) {
        return APR_SUCCESS;
    }
    value = apr_strtoi64(text, &end, 10);
    if (*end != '\0' || value < -1 || value > APR_INT32_MAX) {
        return agent_error_set(&call->err, AGENT_E_BAD_REQUEST,
                               "Header Last-Event-ID: expected the id of an "
                               "event of this run, or -1.",
                               NULL, call->pool);
    }
    *after = value;
    return APR_SUCCESS;
}
