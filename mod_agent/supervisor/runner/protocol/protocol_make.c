/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for runners, and those that are stored in place of one; see protocol.h.
 */
#include "protocol.h"

#include <string.h>

#include <apr_strings.h>

#include "../../../core/json.h"

void agent_protocol_hello(agent_buffer_t *out, const char *application,
                          const char *graphs, const char *failed)
{
    agent_buffer_print(out,
                       "{\"type\":\"hello\",\"protocol\":%d,\"limits\":"
                       "{\"line\":%d,\"blob_part\":%d},"
                       "\"application\":%s,\"graphs\":",
                       AGENT_PROTOCOL_VERSION, (int)AGENT_PROTOCOL_MAX_LINE,
                       (int)AGENT_PROTOCOL_MAX_PART,
                       application != NULL ? application : "null");
    agent_buffer_append(out, graphs, strlen(graphs));
    agent_buffer_append(out, ",\"failed\":", 10);
    failed = failed != NULL ? failed : "null";
    agent_buffer_append(out, failed, strlen(failed));
    agent_buffer_append(out, "}\n", 2);
}

void agent_protocol_cancel(agent_buffer_t *out, const agent_lease_key_t *key)
{
    agent_buffer_print(
        out, "{\"type\":\"cancel\",\"run_id\":\"%.36s\",\"epoch\":%d}\n",
        key->run_id, (int)key->epoch);
}

void agent_protocol_stop(agent_buffer_t *out, const agent_lease_key_t *key,
                         const char *reason, apr_int64_t deadline_ms)
{
    agent_buffer_print(out,
                       "{\"type\":\"stop\",\"run_id\":\"%.36s\",\"epoch\":%d,"
                       "\"reason\":\"%s\",\"deadline_ms\":%" APR_INT64_T_FMT
                       "}\n",
                       key->run_id, (int)key->epoch, reason, deadline_ms);
}

void agent_protocol_go(agent_buffer_t *out, const agent_lease_key_t *key)
{
    agent_buffer_print(out,
                       "{\"type\":\"go\",\"run_id\":\"%.36s\",\"epoch\":%d}\n",
                       key->run_id, (int)key->epoch);
}

void agent_protocol_ping(agent_buffer_t *out, apr_int64_t id)
{
    agent_buffer_print(out, "{\"type\":\"ping\",\"id\":%" APR_INT64_T_FMT "}\n",
                       id);
}

void agent_protocol_drain(agent_buffer_t *out)
{
    agent_buffer_print(out, "{\"type\":\"drain\"}\n");
}

static void begin_reply(agent_buffer_t *out, const agent_lease_key_t *key,
                        apr_int64_t id)
{
    agent_buffer_print(out,
                       "{\"type\":\"reply\",\"run_id\":\"%.36s\","
                       "\"epoch\":%d,\"id\":%" APR_INT64_T_FMT ",",
                       key->run_id, (int)key->epoch, id);
}

/* Appends JSON text as a part of a line: line breaks, which are white space
 * between its tokens, become spaces. */
static void append_json(agent_buffer_t *out, const char *text)
{
    apr_size_t length = strlen(text);
    char *end;
    char *at;

    agent_buffer_append(out, text, length);
    end = agent_buffer_text(out) + agent_buffer_length(out);
    at = memchr(end - length, '\n', length);
    while (at != NULL) {
        *at = ' ';
        at = memchr(at, '\n', (apr_size_t)(end - at));
    }
}

void agent_protocol_reply(agent_buffer_t *out, const agent_lease_key_t *key,
                          apr_int64_t id, const char *result,
                          const char *cursor)
{
    const char *quote = cursor != NULL ? "\"" : "";

    begin_reply(out, key, id);
    agent_buffer_print(out, "\"ok\":true,\"cursor\":%s%s%s,\"result\":", quote,
                       cursor != NULL ? cursor : "null", quote);
    append_json(out, result);
    agent_buffer_append(out, "}\n", 2);
}

void agent_protocol_refuse(agent_buffer_t *out, const agent_lease_key_t *key,
                           apr_int64_t id, const char *code,
                           const char *message)
{
    begin_reply(out, key, id);
    agent_buffer_print(out,
                       "\"ok\":false,\"error\":{\"code\":\"%s\","
                       "\"message\":\"%s\"}}\n",
                       code, message);
}

const char *agent_protocol_metadata(const agent_lease_key_t *key, int attempt,
                                    apr_pool_t *pool)
{
    return apr_psprintf(pool,
                        "{\"type\":\"event\",\"run_id\":\"%.36s\","
                        "\"epoch\":%d,\"event\":\"metadata\","
                        "\"data\":{\"run_id\":\"%.36s\",\"attempt\":%d}}",
                        key->run_id, (int)key->epoch, key->run_id, attempt);
}

static const char *print_failure(const char *error, const char *message,
                                 apr_pool_t *pool)
{
    return apr_pstrcat(pool, "{\"error\":", agent_json_quote(error, pool),
                       ",\"message\":", agent_json_quote(message, pool), "}",
                       NULL);
}

const char *agent_protocol_error(const agent_lease_key_t *key,
                                 const char *error, const char *message,
                                 apr_pool_t *pool)
{
    return apr_psprintf(pool,
                        "{\"type\":\"event\",\"run_id\":\"%.36s\","
                        "\"epoch\":%d,\"event\":\"error\",\"data\":%s}",
                        key->run_id, (int)key->epoch,
                        print_failure(error, message, pool));
}

const char *agent_protocol_end(const agent_lease_key_t *key, const char *status,
                               const char *error, const char *message,
                               apr_pool_t *pool)
{
    return apr_psprintf(pool,
                        "{\"type\":\"end\",\"run_id\":\"%.36s\",\"epoch\":%d,"
                        "\"status\":\"%s\",\"error\":%s}",
                        key->run_id, (int)key->epoch, status,
                        print_failure(error, message, pool));
}
