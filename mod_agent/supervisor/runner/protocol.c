/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the runner protocol; see protocol.h. */
#include "protocol.h"

#include <string.h>

#include <apr_strings.h>

#include "../../core/json.h"
#include "../../core/raw.h"
#include "../../core/scan.h"

/* Longest name of an event, which is a line of an event stream. */
#define MAX_EVENT_NAME 128
#define MAX_SLOTS      10000
/* Longest name of an operation. */
#define MAX_OP 64

/* The members that are checked. Others are stored as they are. */
typedef enum field_t {
    FIELD_TYPE,
    FIELD_RUN_ID,
    FIELD_EPOCH,
    FIELD_EVENT,
    FIELD_DATA,
    FIELD_CHECKPOINT_ID,
    FIELD_PARENT,
    FIELD_VALUES,
    FIELD_NEXT,
    FIELD_TASKS,
    FIELD_METADATA,
    FIELD_STATUS,
    FIELD_ERROR,
    FIELD_GRAPHS,
    FIELD_RUNTIME,
    FIELD_SLOTS,
    FIELD_ID,
    FIELD_BYTES,
    FIELD_OP,
    FIELD_CURSOR,
    FIELD_COUNT
} field_t;

static const char *const field_names[FIELD_COUNT] = {
    "type",          "run_id", "epoch",  "event",  "data",
    "checkpoint_id", "parent", "values", "next",   "tasks",
    "metadata",      "status", "error",  "graphs", "runtime",
    "slots",         "id",     "bytes",  "op",     "cursor"};

typedef struct text_t {
    /* NULL: the member is absent. */
    const char *at;
    apr_size_t length;
} text_t;

typedef struct fields_t {
    text_t value[FIELD_COUNT];
} fields_t;

static bool is_equal(const text_t *text, const char *word)
{
    return text->at != NULL && text->length == strlen(word)
        && memcmp(text->at, word, text->length) == 0;
}

/* The first byte of a JSON value says its type: '{', '[', '"', 'n' ... */
static char kind_of(const fields_t *fields, field_t field)
{
    return fields->value[field].at != NULL ? *fields->value[field].at : '\0';
}

static const char *collect_member(fields_t *fields,
                                  const agent_member_t *member)
{
    const text_t key = {member->key, member->key_length};

    /* The database unescapes names, so this one could become another member. */
    if (memchr(key.at, '\\', key.length) != NULL) {
        return "has an escaped member name";
    }
    for (int i = 0; i < FIELD_COUNT; i++) {
        if (is_equal(&key, field_names[i])) {
            if (fields->value[i].at != NULL) {
                return "has a member twice";
            }
            fields->value[i].at = member->value;
            fields->value[i].length = member->value_length;
        }
    }
    return NULL;
}

/* A string of printable ASCII characters without escapes, not empty. */
static bool read_word(text_t *word, const text_t *value, apr_size_t max)
{
    if (value->at == NULL || *value->at != '"' || value->length < 3
        || value->length - 2 > max) {
        return false;
    }
    word->at = value->at + 1;
    word->length = value->length - 2;
    for (apr_size_t i = 0; i < word->length; i++) {
        if (word->at[i] <= ' ' || word->at[i] > '~' || word->at[i] == '\\') {
            return false;
        }
    }
    return true;
}

static bool read_number(apr_int64_t *number, const text_t *value,
                        apr_int64_t max)
{
    apr_int64_t result = 0;

    if (value->at == NULL || value->length == 0 || value->length > 18) {
        return false;
    }
    for (apr_size_t i = 0; i < value->length; i++) {
        if (value->at[i] < '0' || value->at[i] > '9') {
            return false;
        }
        result = result * 10 + (value->at[i] - '0');
    }
    *number = result;
    return result <= max;
}

static bool is_uuid(const text_t *value)
{
    text_t word;

    if (!read_word(&word, value, 36) || word.length != 36) {
        return false;
    }
    for (int i = 0; i < 36; i++) {
        char c = word.at[i];
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (dash ? c != '-'
                 : !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
            return false;
        }
    }
    return true;
}

static const char *read_key(agent_line_t *line, const fields_t *fields)
{
    apr_int64_t epoch;

    if (!is_uuid(&fields->value[FIELD_RUN_ID])) {
        return "has no valid run_id";
    }
    if (!read_number(&epoch, &fields->value[FIELD_EPOCH], APR_INT32_MAX)) {
        return "has no valid epoch";
    }
    memcpy(line->key.run_id, fields->value[FIELD_RUN_ID].at + 1, 36);
    line->key.epoch = (apr_int32_t)epoch;
    return NULL;
}

static const char *read_ready(agent_line_t *line, const fields_t *fields)
{
    char runtime = kind_of(fields, FIELD_RUNTIME);
    apr_int64_t slots;

    line->type = AGENT_LINE_READY;
    if (kind_of(fields, FIELD_GRAPHS) != '{') {
        return "has no graphs";
    }
    if (!read_number(&slots, &fields->value[FIELD_SLOTS], MAX_SLOTS)
        || slots < 1) {
        return "has no valid slots";
    }
    if (runtime != '\0' && runtime != 'n' && runtime != '{') {
        return "has a runtime that is not an object";
    }
    line->slots = (int)slots;
    line->graphs = fields->value[FIELD_GRAPHS].at;
    line->runtime = NULL;
    line->runtime_length = 0;
    if (runtime == '{') {
        line->runtime = fields->value[FIELD_RUNTIME].at;
        line->runtime_length = fields->value[FIELD_RUNTIME].length;
    }
    return NULL;
}

static const char *read_pong(agent_line_t *line, const fields_t *fields)
{
    line->type = AGENT_LINE_PONG;
    return read_number(&line->ping_id, &fields->value[FIELD_ID], APR_INT64_MAX)
        ? NULL
        : "has no valid id";
}

static const char *read_want(agent_line_t *line, const fields_t *fields)
{
    apr_int64_t bytes;

    line->type = AGENT_LINE_WANT;
    if (!read_number(&bytes, &fields->value[FIELD_BYTES],
                     AGENT_PROTOCOL_MAX_LINE + 1)
        || bytes < 1) {
        return "has no valid bytes";
    }
    line->wanted = (apr_size_t)bytes;
    return read_key(line, fields);
}

static const char *read_request(agent_line_t *line, const fields_t *fields)
{
    const text_t *given = &fields->value[FIELD_CURSOR];
    text_t op;
    text_t cursor = {"", 0};

    line->type = AGENT_LINE_REQUEST;
    if (!read_number(&line->request_id, &fields->value[FIELD_ID],
                     APR_INT64_MAX)) {
        return "has no valid id";
    }
    if (!read_word(&op, &fields->value[FIELD_OP], MAX_OP)) {
        return "has no valid op";
    }
    if (given->at != NULL && !is_equal(given, "null")
        && !read_word(&cursor, given, AGENT_REQUEST_CURSOR_SIZE - 1)) {
        return "has no valid cursor";
    }
    line->op = op.at;
    line->op_length = op.length;
    line->cursor = cursor.at;
    line->cursor_length = cursor.length;
    return read_key(line, fields);
}

static const char *read_event(agent_line_t *line, const fields_t *fields)
{
    text_t name;

    line->type = AGENT_LINE_EVENT;
    if (!read_word(&name, &fields->value[FIELD_EVENT], MAX_EVENT_NAME)) {
        return "has no valid event name";
    }
    if (kind_of(fields, FIELD_CHECKPOINT_ID) != '\0') {
        return is_uuid(&fields->value[FIELD_CHECKPOINT_ID])
            ? read_key(line, fields)
            : "has no valid checkpoint_id";
    }
    return kind_of(fields, FIELD_DATA) != '\0' ? read_key(line, fields)
                                               : "has no data";
}

static const char *read_checkpoint(agent_line_t *line, const fields_t *fields)
{
    line->type = AGENT_LINE_CHECKPOINT;
    if (!is_uuid(&fields->value[FIELD_CHECKPOINT_ID])) {
        return "has no valid checkpoint_id";
    }
    if (!is_equal(&fields->value[FIELD_PARENT], "null")
        && !is_uuid(&fields->value[FIELD_PARENT])) {
        return "has no valid parent";
    }
    if (kind_of(fields, FIELD_VALUES) != '{'
        || kind_of(fields, FIELD_METADATA) != '{') {
        return "has no values or no metadata";
    }
    if (kind_of(fields, FIELD_NEXT) != '['
        || kind_of(fields, FIELD_TASKS) != '[') {
        return "has no next or no tasks";
    }
    return read_key(line, fields);
}

static const char *read_end(agent_line_t *line, const fields_t *fields)
{
    static const char *const statuses[] = {"\"success\"", "\"error\"",
                                           "\"interrupted\"", "\"timeout\""};
    const text_t *status = &fields->value[FIELD_STATUS];
    char error = kind_of(fields, FIELD_ERROR);

    line->type = AGENT_LINE_END;
    line->success = is_equal(status, statuses[0]);
    line->failure = NULL;
    if (is_equal(status, statuses[1]) && error == '{') {
        line->failure = fields->value[FIELD_ERROR].at;
        line->failure_length = fields->value[FIELD_ERROR].length;
    }
    if (error != '\0' && error != 'n' && error != '{') {
        return "has an error that is not an object";
    }
    for (int i = 0; i < 4; i++) {
        if (is_equal(status, statuses[i])) {
            return read_key(line, fields);
        }
    }
    return "has no valid status";
}

typedef struct line_row_t {
    const char *type;
    const char *(*read)(agent_line_t *line, const fields_t *fields);
} line_row_t;

static const line_row_t line_rows[] = {
    {"\"event\"", read_event},     {"\"checkpoint\"", read_checkpoint},
    {"\"end\"", read_end},         {"\"pong\"", read_pong},
    {"\"ready\"", read_ready},     {"\"want\"", read_want},
    {"\"request\"", read_request},
};

static const char *read_by_type(agent_line_t *line, const fields_t *fields)
{
    const text_t *type = &fields->value[FIELD_TYPE];

    for (apr_size_t i = 0; i < sizeof(line_rows) / sizeof(*line_rows); i++) {
        if (is_equal(type, line_rows[i].type)) {
            return line_rows[i].read(line, fields);
        }
    }
    return "has no known type";
}

const char *agent_protocol_read(agent_line_t *line, const char *text,
                                apr_size_t length)
{
    agent_scan_t scan = {.code = AGENT_SCAN_OK};
    const char *start = text + strspn(text, " \t\r");
    fields_t fields = {.value = {{NULL, 0}}};
    agent_member_t member;
    const char *at = start;
    const char *wrong;

    if (!agent_scan_json(&scan, text, length)) {
        return agent_scan_reason(scan.code);
    }
    if (*start != '{') {
        return "is not an object";
    }
    while (agent_member_next(&member, &at)) {
        wrong = collect_member(&fields, &member);
        if (wrong != NULL) {
            return wrong;
        }
    }
    return read_by_type(line, &fields);
}

void agent_protocol_hello(agent_buffer_t *out, const char *graphs)
{
    agent_buffer_print(out, "{\"type\":\"hello\",\"protocol\":%d,\"graphs\":",
                       AGENT_PROTOCOL_VERSION);
    agent_buffer_append(out, graphs, strlen(graphs));
    agent_buffer_append(out, "}\n", 2);
}

void agent_protocol_cancel(agent_buffer_t *out, const agent_lease_key_t *key)
{
    agent_buffer_print(
        out, "{\"type\":\"cancel\",\"run_id\":\"%.36s\",\"epoch\":%d}\n",
        key->run_id, (int)key->epoch);
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

void agent_protocol_reply(agent_buffer_t *out, const agent_lease_key_t *key,
                          apr_int64_t id, const char *result,
                          const char *cursor)
{
    const char *quote = cursor != NULL ? "\"" : "";

    begin_reply(out, key, id);
    agent_buffer_print(out, "\"ok\":true,\"cursor\":%s%s%s,\"result\":", quote,
                       cursor != NULL ? cursor : "null", quote);
    agent_buffer_append(out, result, strlen(result));
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
