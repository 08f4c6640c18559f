/* SPDX-License-Identifier: Apache-2.0 */
/* Reads bodies, query strings and headers; see request.h. */
#include "request.h"

#include <string.h>
#include <strings.h>

#include <apr_buckets.h>
#include <apr_strings.h>
#include <http_protocol.h>
#include <util_filter.h>

#include "../core/json.h"
#include "../core/scan.h"
#include "../model/schema.h"

static apr_status_t refuse(agent_call_t *call, agent_error_id_t id,
                           const char *detail)
{
    return agent_error_set(&call->err, id, detail, NULL, call->pool);
}

static apr_status_t refuse_coding(agent_call_t *call)
{
    call->r->connection->keepalive = AP_CONN_CLOSE;
    return refuse(call, AGENT_E_MEDIA_TYPE, NULL);
}

/* What was read. Nothing here unpacks a body, and a coding that is not undone
 * would be stored as it came; an input filter that has undone it (mod_deflate)
 * takes the header away. */
static apr_status_t check_content(agent_call_t *call)
{
    const char *coding = apr_table_get(call->r->headers_in, "Content-Encoding");

    return coding == NULL || *coding == '\0'
            || strcasecmp(coding, "identity") == 0
        ? APR_SUCCESS
        : refuse_coding(call);
}

static bool is_blank(const char *text, apr_size_t length)
{
    return strspn(text, " \t\r\n") == length;
}

apr_status_t agent_request_body(agent_raw_t *value, agent_call_t *call)
{
    apr_size_t length = call->body_length;

    if (check_content(call) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    if (is_blank(call->body, length)) {
        call->body = "{}";
        length = 2;
    }
    if (agent_json_scan_request(call->body, length, &call->err, call->pool)
        != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    *value = agent_raw_read(call->body);
    return APR_SUCCESS;
}

/* Decodes one name or value; NULL when it is no UTF-8 text. */
static char *decode(agent_call_t *call, const char *text)
{
    char *copy = apr_pstrdup(call->pool, text);
    agent_scan_t *scan;
    const char *quoted;

    if (ap_unescape_urlencoded(copy) != OK) {
        return NULL;
    }
    /* The JSON scanner is the one place that knows what UTF-8 is. */
    scan = apr_pcalloc(call->pool, sizeof(*scan));
    quoted = agent_json_quote(copy, call->pool);
    return agent_scan_json(scan, quoted, strlen(quoted)) ? copy : NULL;
}

apr_status_t agent_request_query(agent_call_t *call)
{
    char *rest = apr_pstrdup(call->pool, call->r->args ? call->r->args : "");
    char *pair;
    char *state = NULL;

    call->query = apr_table_make(call->pool, 4);
    while ((pair = apr_strtok(rest, "&", &state)) != NULL) {
        char *equals = strchr(pair, '=');
        const char *name;
        const char *value;

        rest = NULL;
        if (equals != NULL) {
            *equals++ = '\0';
        }
        name = decode(call, pair);
        value = decode(call, equals ? equals : "");
        if (name == NULL || value == NULL) {
            return refuse(call, AGENT_E_BAD_REQUEST,
                          "The query string is badly encoded.");
        }
        apr_table_addn(call->query, name, value);
    }
    return APR_SUCCESS;
}

static apr_status_t refuse_query(agent_call_t *call, const char *name,
                                 const char *expected)
{
    return agent_error_setf(&call->err, AGENT_E_INVALID, call->pool,
                            "Query parameter %s: expected %s.", name, expected);
}

apr_status_t agent_request_number(int *out, agent_call_t *call,
                                  const char *name, int low, int high)
{
    const char *text = apr_table_get(call->query, name);
    apr_int64_t value;
    char *end;

    if (text == NULL) {
        return APR_SUCCESS;
    }
    value = apr_strtoi64(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || value < low
        || value > high) {
        return refuse_query(call, name,
                            apr_psprintf(call->pool,
                                         "a whole number from %d to %d", low,
                                         high));
    }
    *out = (int)value;
    return APR_SUCCESS;
}

apr_status_t agent_request_word(const char **out, agent_call_t *call,
                                const char *name, const char *const *words)
{
    const char *text = apr_table_get(call->query, name);

    if (text == NULL) {
        return APR_SUCCESS;
    }
    if (!agent_schema_is_word(text, words)) {
        return refuse_query(call, name,
                            agent_schema_print_words(words, call->pool));
    }
    *out = text;
    return APR_SUCCESS;
}

apr_status_t agent_request_flag(bool *out, agent_call_t *call, const char *name)
{
    const char *text = apr_table_get(call->query, name);

    if (text == NULL) {
        return APR_SUCCESS;
    }
    if (strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0
        || strcasecmp(text, "yes") == 0) {
        *out = true;
        return APR_SUCCESS;
    }
    if (strcasecmp(text, "false") == 0 || strcmp(text, "0") == 0
        || strcasecmp(text, "no") == 0) {
        *out = false;
        return APR_SUCCESS;
    }
    return refuse_query(call, name, "true or false");
}

/* The words of one value: a JSON array of strings, or joined by commas. */
static void split_words(apr_array_header_t *list, agent_call_t *call,
                        const char *value)
{
    agent_error_t *err;
    agent_raw_t item;
    char *rest;
    char *word;
    char *state = NULL;

    if (*value == '['
        && agent_json_scan_request(value, strlen(value), &err, call->pool)
            == APR_SUCCESS) {
        while (agent_element_next(&item, &value)) {
            const char *text = agent_raw_string(item, call->pool);
            /* Anything but a string is no word, and refused as such. */
            APR_ARRAY_PUSH(list, const char *) = text != NULL ? text : "null";
        }
        return;
    }
    rest = apr_pstrdup(call->pool, value);
    while ((word = apr_strtok(rest, ",", &state)) != NULL) {
        rest = NULL;
        APR_ARRAY_PUSH(list, const char *) = word;
    }
}

apr_status_t agent_request_words(const char *const **out, agent_call_t *call,
                                 const char *name, const char *const *words)
{
    const apr_array_header_t *pairs = apr_table_elts(call->query);
    apr_array_header_t *list = apr_array_make(call->pool, 8,
                                              sizeof(const char *));

    for (int i = 0; i < pairs->nelts; i++) {
        const apr_table_entry_t *pair = &APR_ARRAY_IDX(pairs, i,
                                                       const apr_table_entry_t);

        if (strcmp(pair->key, name) == 0) {
            split_words(list, call, pair->val);
        }
    }
    /* The Python SDK sends the name without a value for no words at all. */
    if (list->nelts == 0) {
        return APR_SUCCESS;
    }
    for (int i = 0; i < list->nelts; i++) {
        if (!agent_schema_is_word(APR_ARRAY_IDX(list, i, const char *),
                                  words)) {
            return refuse_query(call, name,
                                agent_schema_print_words(words, call->pool));
        }
    }
    APR_ARRAY_PUSH(list, const char *) = NULL;
    *out = (const char *const *)list->elts;
    return APR_SUCCESS;
}

apr_status_t agent_request_identity(const char **out, agent_call_t *call,
                                    const char *name, apr_size_t limit)
{
    const char *value = apr_table_get(call->r->headers_in, name);
    apr_size_t length = 0;

    *out = value;
    if (value == NULL) {
        return APR_SUCCESS;
    }
    /* httpd joins repeated headers with a comma and a space. */
    while (value[length] > ' ' && value[length] < 0x7f
           && value[length] != ',') {
        length++;
    }
    if (value[length] != '\0' || length == 0 || length > limit) {
        return agent_error_setf(&call->err, AGENT_E_BAD_REQUEST, call->pool,
                                "Header %s: expected 1 to %d visible ASCII "
                                "characters without a comma, sent once.",
                                name, (int)limit);
    }
    return APR_SUCCESS;
}
