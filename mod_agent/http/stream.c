/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events; see stream.h. */
#include "stream.h"

#include <string.h>

#include <apr_strings.h>

#include "request.h"
#include "response.h"

apr_status_t agent_stream_begin(agent_call_t *call)
{
    return agent_response_begin(call, "text/event-stream");
}

const char *agent_stream_event(const char *id, const char *event,
                               const char *data, apr_pool_t *pool)
{
    char *text = apr_pstrcat(pool, "event: ", event, "\ndata: ", data,
                             id != NULL ? "\nid: " : "", id != NULL ? id : "",
                             "\n\n", NULL);
    char *end = text + strlen("event: ") + strlen(event) + strlen("\ndata: ")
        + strlen(data);

    for (char *p = end - strlen(data); p < end; p++) {
        if (*p == '\n' || *p == '\r') {
            *p = ' ';
        }
    }
    return text;
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
                 {"events", "events"}};
    size_t length = strcspn(event, "|");

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (strlen(modes[i].event) == length
            && strncmp(modes[i].event, event, length) == 0) {
            return modes[i].mode;
        }
    }
    return NULL;
}

bool agent_stream_shows(const char *const *modes, const char *event)
{
    const char *mode = modes != NULL ? find_mode(event) : NULL;

    if (mode == NULL) {
        return true;
    }
    while (*modes != NULL && strcmp(*modes, mode) != 0) {
        modes++;
    }
    return *modes != NULL;
}

apr_status_t agent_stream_cursor(apr_int64_t *after, agent_call_t *call)
{
    const char *text;
    char *end;
    apr_int64_t value;

    if (agent_request_identity(&text, call, "Last-Event-ID", 20)
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
