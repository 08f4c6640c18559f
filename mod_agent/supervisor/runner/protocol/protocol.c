/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of runners; see protocol.h. */
#include "protocol_private.h"

#include <string.h>

#include "../../../core/raw.h"
#include "../../../core/scan.h"

#define MAX_SLOTS 10000
/* Longest name of an operation. */
#define MAX_OP     64
#define MAX_FORMAT 64

static const char *read_importing(agent_line_t *line,
                                  const agent_protocol_fields_t *fields)
{
    const agent_protocol_text_t *name = &fields->value[FIELD_GRAPH_ID];

    line->type = AGENT_LINE_IMPORTING;
    line->graph = NULL;
    line->graph_length = 0;
    if (!agent_protocol_is_optional(fields, FIELD_GRAPH_ID, '"')) {
        return "has no valid graph_id";
    }
    if (agent_protocol_kind(fields, FIELD_GRAPH_ID) == '"') {
        line->graph = name->at + 1;
        line->graph_length = name->length - 2;
    }
    return NULL;
}

static const char *read_ready(agent_line_t *line,
                              const agent_protocol_fields_t *fields)
{
    char runtime = agent_protocol_kind(fields, FIELD_RUNTIME);
    apr_int64_t slots;

    line->type = AGENT_LINE_READY;
    if (agent_protocol_kind(fields, FIELD_GRAPHS) != '{') {
        return "has no graphs";
    }
    if (!agent_protocol_number(&slots, &fields->value[FIELD_SLOTS], MAX_SLOTS)
        || slots < 1) {
        return "has no valid slots";
    }
    if (runtime != '\0' && runtime != 'n' && runtime != '{') {
        return "has a runtime that is not an object";
    }
    if (!agent_protocol_is_optional(fields, FIELD_FEATURES, '\0')) {
        return "has features, a reserved name";
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

static const char *read_pong(agent_line_t *line,
                             const agent_protocol_fields_t *fields)
{
    char spent = agent_protocol_kind(fields, FIELD_SPENT);

    line->type = AGENT_LINE_PONG;
    line->busy_ms = 0;
    line->wants_replacement = spent == 't';
    if (!line->wants_replacement
        && !agent_protocol_is_optional(fields, FIELD_SPENT, 'f')) {
        return "has no valid spent";
    }
    if (!agent_protocol_is_optional(fields, FIELD_BUSY_MS, '\0')
        && !agent_protocol_number(&line->busy_ms, &fields->value[FIELD_BUSY_MS],
                                  APR_INT64_MAX)) {
        return "has no valid busy_ms";
    }
    return agent_protocol_number(&line->ping_id, &fields->value[FIELD_ID],
                                 APR_INT64_MAX)
        ? NULL
        : "has no valid id";
}

static const char *read_want(agent_line_t *line,
                             const agent_protocol_fields_t *fields)
{
    apr_int64_t bytes;

    line->type = AGENT_LINE_WANT;
    if (!agent_protocol_number(&bytes, &fields->value[FIELD_BYTES],
                               AGENT_PROTOCOL_MAX_LINE + 1)
        || bytes < 1) {
        return "has no valid bytes";
    }
    line->wanted = (apr_size_t)bytes;
    return agent_protocol_read_key(line, fields);
}

/* Only those of a request to the store are long. */
static const char *check_length(const agent_line_t *line)
{
    if (line->op_length == 5 && memcmp(line->op, "store", 5) == 0) {
        return line->args_length > AGENT_RUNNER_REQUEST_MAX_STORE
            ? "has args of more than 4 MiB"
            : NULL;
    }
    return line->args_length > AGENT_RUNNER_REQUEST_MAX_ARGS
        ? "has args of more than 4 KiB"
        : NULL;
}

/* The arguments of a request, and its run. The operation was read. */
static const char *read_args(agent_line_t *line,
                             const agent_protocol_fields_t *fields)
{
    const agent_protocol_text_t *args = &fields->value[FIELD_ARGS];
    const char *wrong;

    line->args = "";
    line->args_length = 0;
    if (!agent_protocol_is_optional(fields, FIELD_ARGS, '{')) {
        return "has no valid args";
    }
    if (agent_protocol_kind(fields, FIELD_ARGS) == '{') {
        line->args = args->at;
        line->args_length = args->length;
    }
    wrong = check_length(line);
    return wrong == NULL ? agent_protocol_read_key(line, fields) : wrong;
}

static const char *read_request(agent_line_t *line,
                                const agent_protocol_fields_t *fields)
{
    const agent_protocol_text_t *given = &fields->value[FIELD_CURSOR];
    agent_protocol_text_t op;
    agent_protocol_text_t cursor = {"", 0};

    line->type = AGENT_LINE_REQUEST;
    if (!agent_protocol_number(&line->request_id, &fields->value[FIELD_ID],
                               APR_INT64_MAX)) {
        return "has no valid id";
    }
    if (!agent_protocol_word(&op, &fields->value[FIELD_OP], MAX_OP)) {
        return "has no valid op";
    }
    if (given->at != NULL && !agent_protocol_equals(given, "null")
        && !agent_protocol_word(&cursor, given,
                                AGENT_RUNNER_REQUEST_CURSOR_SIZE - 1)) {
        return "has no valid cursor";
    }
    line->op = op.at;
    line->op_length = op.length;
    line->cursor = cursor.at;
    line->cursor_length = cursor.length;
    return read_args(line, fields);
}

/* An event with the values of a checkpoint: data and path are both absent, or
 * an object and an array of names, which the database reads. */
static const char *check_values(const agent_protocol_fields_t *fields)
{
    if (!agent_protocol_is_uuid(&fields->value[FIELD_CHECKPOINT_ID])) {
        return "has no valid checkpoint_id";
    }
    if (agent_protocol_kind(fields, FIELD_PATH) == '\0') {
        return agent_protocol_kind(fields, FIELD_DATA) == '\0'
            ? NULL
            : "has data but no path";
    }
    return agent_protocol_kind(fields, FIELD_PATH) == '['
            && agent_protocol_kind(fields, FIELD_DATA) == '{'
        ? NULL
        : "has a path that is not an array, or no data for it";
}

/* A line of an event stream has it, whose readers remove spaces at its ends. */
static bool is_event_name(const agent_protocol_text_t *value)
{
    agent_protocol_text_t name;

    return agent_protocol_text(&name, value, AGENT_PROTOCOL_MAX_EVENT)
        && name.length > 0 && name.at[0] != ' '
        && name.at[name.length - 1] != ' ';
}

static const char *read_event(agent_line_t *line,
                              const agent_protocol_fields_t *fields)
{
    const char *wrong;

    line->type = AGENT_LINE_EVENT;
    if (!is_event_name(&fields->value[FIELD_EVENT])) {
        return "has no valid event name";
    }
    if (agent_protocol_kind(fields, FIELD_CHECKPOINT_ID) != '\0') {
        wrong = check_values(fields);
        return wrong == NULL ? agent_protocol_read_key(line, fields) : wrong;
    }
    return agent_protocol_kind(fields, FIELD_DATA) != '\0'
        ? agent_protocol_read_key(line, fields)
        : "has no data";
}

/* Whether the namespace of a checkpoint is absent or valid. */
static bool is_ns(const agent_protocol_fields_t *fields)
{
    agent_protocol_text_t ns;

    return agent_protocol_is_optional(fields, FIELD_NS, '\0')
        || agent_protocol_text(&ns, &fields->value[FIELD_NS],
                               AGENT_PROTOCOL_MAX_NS);
}

static const char *read_checkpoint(agent_line_t *line,
                                   const agent_protocol_fields_t *fields)
{
    agent_protocol_text_t format;

    line->type = AGENT_LINE_CHECKPOINT;
    if (!is_ns(fields)) {
        return "has no valid ns";
    }
    if (!agent_protocol_is_uuid(&fields->value[FIELD_CHECKPOINT_ID])) {
        return "has no valid checkpoint_id";
    }
    if (!agent_protocol_equals(&fields->value[FIELD_PARENT], "null")
        && !agent_protocol_is_uuid(&fields->value[FIELD_PARENT])) {
        return "has no valid parent";
    }
    if (agent_protocol_kind(fields, FIELD_VALUES) != '{'
        || agent_protocol_kind(fields, FIELD_METADATA) != '{') {
        return "has no values or no metadata";
    }
    if (agent_protocol_kind(fields, FIELD_NEXT) != '['
        || agent_protocol_kind(fields, FIELD_TASKS) != '[') {
        return "has no next or no tasks";
    }
    if (!agent_protocol_is_optional(fields, FIELD_FORMAT, '\0')
        && !agent_protocol_word(&format, &fields->value[FIELD_FORMAT],
                                MAX_FORMAT)) {
        return "has no valid format";
    }
    return agent_protocol_read_acked(line, fields);
}

/* Whether a task has an id. Of equal members the last one counts, as in the
 * database. */
static bool has_task_id(const agent_protocol_text_t *task)
{
    const char *at = task->at;
    agent_protocol_text_t id = {NULL, 0};
    agent_protocol_text_t word;
    agent_member_t member;

    while (agent_raw_member_next(&member, &at)) {
        if (agent_raw_member_is(&member, "id")) {
            id.at = member.value;
            id.length = member.value_length;
        }
    }
    return agent_protocol_word(&word, &id, AGENT_PROTOCOL_MAX_TASK_ID);
}

static const char *read_task(agent_line_t *line,
                             const agent_protocol_fields_t *fields)
{
    line->type = AGENT_LINE_TASK;
    if (!agent_protocol_is_uuid(&fields->value[FIELD_CHECKPOINT_ID])) {
        return "has no valid checkpoint_id";
    }
    if (!is_ns(fields)) {
        return "has no valid ns";
    }
    if (agent_protocol_kind(fields, FIELD_TASK) != '{'
        || !has_task_id(&fields->value[FIELD_TASK])) {
        return "has no task with a valid id";
    }
    return agent_protocol_read_key(line, fields);
}

/* Where the run stopped. */
static const char *check_stop(const agent_protocol_fields_t *fields)
{
    if (!agent_protocol_is_optional(fields, FIELD_INTERRUPTS, '{')
        || !agent_protocol_is_optional(fields, FIELD_NEXT, '[')) {
        return "has no valid interrupts or next";
    }
    return agent_protocol_is_optional(fields, FIELD_HEAD, '\0')
            || agent_protocol_is_uuid(&fields->value[FIELD_HEAD])
        ? NULL
        : "has no valid head";
}

static const char *read_status(agent_line_t *line,
                               const agent_protocol_fields_t *fields)
{
    static const char *const statuses[] = {"\"success\"", "\"error\"",
                                           "\"interrupted\"", "\"timeout\"",
                                           "\"drained\""};
    const agent_protocol_text_t *status = &fields->value[FIELD_STATUS];

    line->success = agent_protocol_equals(status, statuses[0]);
    line->is_drained = agent_protocol_equals(status, statuses[4]);
    line->failure = NULL;
    if (agent_protocol_equals(status, statuses[1])
        && agent_protocol_kind(fields, FIELD_ERROR) == '{') {
        line->failure = fields->value[FIELD_ERROR].at;
        line->failure_length = fields->value[FIELD_ERROR].length;
    }
    for (int i = 0; i < 5; i++) {
        if (agent_protocol_equals(status, statuses[i])) {
            return NULL;
        }
    }
    return "has no valid status";
}

static const char *read_end(agent_line_t *line,
                            const agent_protocol_fields_t *fields)
{
    const char *wrong = read_status(line, fields);

    line->type = AGENT_LINE_END;
    line->has_value = agent_protocol_kind(fields, FIELD_VALUE) != '\0';
    if (!agent_protocol_is_optional(fields, FIELD_ERROR, '{')) {
        return "has an error that is not an object";
    }
    if (wrong == NULL) {
        wrong = check_stop(fields);
    }
    return wrong == NULL ? agent_protocol_read_key(line, fields) : wrong;
}

typedef struct line_row_t {
    const char *type;
    const char *(*read)(agent_line_t *line,
                        const agent_protocol_fields_t *fields);
} line_row_t;

static const line_row_t line_rows[] = {
    {"\"event\"", read_event},
    {"\"checkpoint\"", read_checkpoint},
    {"\"end\"", read_end},
    {"\"pong\"", read_pong},
    {"\"importing\"", read_importing},
    {"\"ready\"", read_ready},
    {"\"want\"", read_want},
    {"\"request\"", read_request},
    {"\"blob\"", agent_protocol_read_blob},
    {"\"put\"", agent_protocol_read_put},
    {"\"put_writes\"", agent_protocol_read_writes},
    {"\"task\"", read_task},
};

static const char *read_by_type(agent_line_t *line,
                                const agent_protocol_fields_t *fields)
{
    const agent_protocol_text_t *type = &fields->value[FIELD_TYPE];

    for (apr_size_t i = 0; i < sizeof(line_rows) / sizeof(*line_rows); i++) {
        if (agent_protocol_equals(type, line_rows[i].type)) {
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
    agent_protocol_fields_t fields = {.value = {{NULL, 0}}};
    const char *wrong;

    if (!agent_scan_json(&scan, text, length)) {
        return agent_scan_reason(scan.code);
    }
    if (*start != '{') {
        return "is not an object";
    }
    line->ack = -1;
    wrong = agent_protocol_collect(&fields, start);
    return wrong != NULL ? wrong : read_by_type(line, &fields);
}
