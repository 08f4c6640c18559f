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
#include "../core/uuid.h"
#include "../core/word.h"

static apr_status_t refuse(agent_call_t *call, agent_error_id_t id,
                           const char *detail)
{
    return agent_error_set(&call->err, id, detail, NULL, call->pool);
}

/* Refuses an encoded body, because bodies are stored as received. An input
 * filter that decodes (mod_deflate) removes the header. */
static apr_status_t check_content(agent_call_t *call)
{
    const char *coding = apr_table_get(call->r->headers_in, "Content-Encoding");

    return coding == NULL || *coding == '\0'
            || strcasecmp(coding, "identity") == 0
        ? APR_SUCCESS
        : refuse(call, AGENT_E_MEDIA_TYPE, NULL);
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

apr_status_t agent_request_small_body(agent_raw_t *value, agent_call_t *call)
{
    if (call->body_length > AGENT_SMALL_BODY_BYTES) {
        return agent_error_setf(
            &call->err, AGENT_E_TOO_LARGE, call->pool,
            "The body of this request is larger than %d bytes.",
            AGENT_SMALL_BODY_BYTES);
    }
    return agent_request_body(value, call);
}

/* Decodes in place; false if the result is not UTF-8 or contains U+0000. */
static bool decode(char *text)
{
    return ap_unescape_urlencoded(text) == OK
        && agent_scan_is_utf8(text, strlen(text));
}

static bool add_param(apr_table_t *query, char *pair)
{
    char *value = strchr(pair, '=');

    if (value != NULL) {
        *value++ = '\0';
    }
    if (!decode(pair) || (value != NULL && !decode(value))) {
        return false;
    }
    apr_table_addn(query, pair, value != NULL ? value : "");
    return true;
}

/* Counts empty parameters too. */
static apr_size_t count_params(const char *args)
{
    apr_size_t count = 1;

    for (; (args = strchr(args, '&')) != NULL; args++) {
        count++;
    }
    return count;
}

static apr_status_t read_params(agent_call_t *call, char *rest)
{
    char *pair;
    char *state = NULL;

    while ((pair = apr_strtok(rest, "&", &state)) != NULL) {
        rest = NULL;
        if (!add_param(call->query, pair)) {
            return refuse(call, AGENT_E_BAD_REQUEST,
                          "The query string is badly encoded.");
        }
    }
    return APR_SUCCESS;
}

apr_status_t agent_request_query(agent_call_t *call)
{
    const char *args = call->r->args;
    apr_size_t count;
    apr_pool_t *pool;

    if (args == NULL || *args == '\0') {
        return APR_SUCCESS;
    }
    count = count_params(args);
    if (count > AGENT_QUERY_PARAMS) {
        return agent_error_setf(&call->err, AGENT_E_INVALID, call->pool,
                                "The query string has more than %d parameters.",
                                AGENT_QUERY_PARAMS);
    }
    apr_pool_create(&pool, call->pool);
    call->query = apr_table_make(pool, (int)count);
    return read_params(call, apr_pstrdup(pool, args));
}

static apr_pool_t *get_query_pool(const agent_call_t *call)
{
    return apr_table_elts(call->query)->pool;
}

void agent_request_drop_query(agent_call_t *call)
{
    if (call->query != NULL) {
        apr_pool_destroy(get_query_pool(call));
        call->query = NULL;
    }
}

/* The first value of a name; NULL when it is absent. */
static const char *find_param(const agent_call_t *call, const char *name)
{
    return call->query != NULL ? apr_table_get(call->query, name) : NULL;
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
    const char *text = find_param(call, name);
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
    const char *text = find_param(call, name);
    const char *word;

    if (text == NULL) {
        return APR_SUCCESS;
    }
    word = agent_word_find(text, words);
    if (word == NULL) {
        return refuse_query(call, name, agent_word_print(words, call->pool));
    }
    *out = word;
    return APR_SUCCESS;
}

apr_status_t agent_request_uuid(const char **out, agent_call_t *call,
                                const char *name)
{
    const char *text = find_param(call, name);
    char id[AGENT_UUID_SIZE];

    if (text == NULL) {
        return APR_SUCCESS;
    }
    if (!agent_uuid_parse(id, text)) {
        return refuse_query(call, name, "a UUID");
    }
    *out = apr_pstrdup(call->pool, id);
    return APR_SUCCESS;
}

apr_status_t agent_request_flag(bool *out, agent_call_t *call, const char *name)
{
    const char *text = find_param(call, name);

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

apr_status_t agent_request_depth(int *out, agent_call_t *call, const char *name,
                                 int high, int all)
{
    bool flag = false;

    if (agent_request_flag(&flag, call, name) == APR_SUCCESS) {
        *out = flag ? all : *out;
        return APR_SUCCESS;
    }
    return agent_request_number(out, call, name, 0, high) == APR_SUCCESS
        ? APR_SUCCESS
        : refuse_query(call, name,
                       apr_psprintf(call->pool,
                                    "true, false or a whole number from 0 to "
                                    "%d",
                                    high));
}

/* Adds text if it is one of words and not in the list, which is therefore never
 * longer than words; false if it is none of them. */
static bool add_word(apr_array_header_t *list, const char *text,
                     const char *const *words)
{
    const char *word = agent_word_find(text, words);

    if (word == NULL) {
        return false;
    }
    for (int i = 0; i < list->nelts; i++) {
        if (APR_ARRAY_IDX(list, i, const char *) == word) {
            return true;
        }
    }
    APR_ARRAY_PUSH(list, const char *) = word;
    return true;
}

static bool add_json_words(apr_array_header_t *list, const char *value,
                           const char *const *words, apr_pool_t *scratch)
{
    agent_raw_t item;

    while (agent_raw_element_next(&item, &value)) {
        const char *text = agent_raw_string(item, scratch);

        if (text == NULL || !add_word(list, text, words)) {
            return false;
        }
    }
    return true;
}

/* Adds the words of one value: a JSON array of strings, or a list separated by
 * commas. */
static bool add_words(apr_array_header_t *list, const char *value,
                      const char *const *words, apr_pool_t *scratch)
{
    agent_error_t *err;
    char *rest;
    char *word;
    char *state = NULL;

    if (*value == '['
        && agent_json_scan_request(value, strlen(value), &err, scratch)
            == APR_SUCCESS) {
        return add_json_words(list, value, words, scratch);
    }
    rest = apr_pstrdup(scratch, value);
    while ((word = apr_strtok(rest, ",", &state)) != NULL) {
        rest = NULL;
        if (!add_word(list, word, words)) {
            return false;
        }
    }
    return true;
}

static apr_status_t read_words(apr_array_header_t *list, agent_call_t *call,
                               const char *name, const char *const *words)
{
    const apr_array_header_t *params = apr_table_elts(call->query);

    for (int i = 0; i < params->nelts; i++) {
        const apr_table_entry_t *param = &APR_ARRAY_IDX(
            params, i, const apr_table_entry_t);

        if (strcmp(param->key, name) == 0
            && !add_words(list, param->val, words, get_query_pool(call))) {
            return refuse_query(call, name,
                                agent_word_print(words, call->pool));
        }
    }
    return APR_SUCCESS;
}

apr_status_t agent_request_words(const char *const **out, agent_call_t *call,
                                 const char *name, const char *const *words)
{
    apr_array_header_t *list;

    if (call->query == NULL) {
        return APR_SUCCESS;
    }
    list = apr_array_make(call->pool, 8, sizeof(const char *));
    if (read_words(list, call, name, words) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    /* The Python SDK sends the name without a value for an empty list. */
    if (list->nelts > 0) {
        APR_ARRAY_PUSH(list, const char *) = NULL;
        *out = (const char *const *)list->elts;
    }
    return APR_SUCCESS;
}

apr_status_t agent_request_text(const char **out, agent_call_t *call,
                                const char *name, apr_size_t limit)
{
    const char *text = find_param(call, name);

    if (text == NULL || *text == '\0') {
        return APR_SUCCESS;
    }
    if (strlen(text) > limit) {
        return refuse_query(call, name,
                            apr_psprintf(call->pool,
                                         "at most %" APR_SIZE_T_FMT " bytes",
                                         limit));
    }
    *out = apr_pstrdup(call->pool, text);
    return APR_SUCCESS;
}

void agent_request_texts(const char *const **out, agent_call_t *call,
                         const char *name)
{
    const apr_array_header_t *params;
    apr_array_header_t *list;

    if (find_param(call, name) == NULL) {
        return;
    }
    params = apr_table_elts(call->query);
    list = apr_array_make(call->pool, 4, sizeof(const char *));
    for (int i = 0; i < params->nelts; i++) {
        const apr_table_entry_t *param = &APR_ARRAY_IDX(
            params, i, const apr_table_entry_t);

        if (strcmp(param->key, name) == 0) {
            APR_ARRAY_PUSH(list, const char *) = apr_pstrdup(call->pool,
                                                             param->val);
        }
    }
    APR_ARRAY_PUSH(list, const char *) = NULL;
    *out = (const char *const *)list->elts;
}

apr_status_t agent_request_identifier(const char **out, agent_call_t *call,
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
                                "Header %s: expected 1 to %d printable ASCII "
                                "characters without a comma, sent once.",
                                name, (int)limit);
    }
    return APR_SUCCESS;
}
