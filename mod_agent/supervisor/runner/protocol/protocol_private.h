/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that parse lines of runners: the outer members of a line,
 * and their checks. */
#ifndef AGENT_SUPERVISOR_PROTOCOL_PRIVATE_H
#define AGENT_SUPERVISOR_PROTOCOL_PRIVATE_H

#include "protocol.h"

/* The members that have a meaning: each may be there once. Others are stored as
 * they are. */
typedef enum agent_protocol_field_t {
    FIELD_TYPE,
    FIELD_RUN_ID,
    FIELD_EPOCH,
    FIELD_EVENT,
    FIELD_DATA,
    FIELD_CHECKPOINT_ID,
    FIELD_PATH,
    FIELD_PARENT,
    FIELD_VALUES,
    FIELD_NEXT,
    FIELD_TASKS,
    FIELD_METADATA,
    FIELD_FORMAT,
    FIELD_STATUS,
    FIELD_VALUE,
    FIELD_ERROR,
    FIELD_GRAPHS,
    FIELD_RUNTIME,
    FIELD_FEATURES,
    FIELD_SLOTS,
    FIELD_ID,
    FIELD_BYTES,
    FIELD_OP,
    FIELD_CURSOR,
    FIELD_INTERRUPTS,
    FIELD_HEAD,
    FIELD_NS,
    FIELD_TASK,
    FIELD_BUSY_MS,
    FIELD_SPENT,
    FIELD_ARGS,
    FIELD_ACK,
    FIELD_CHECKPOINT,
    FIELD_CHANNELS,
    FIELD_TASK_ID,
    FIELD_TASK_PATH,
    FIELD_WRITES,
    FIELD_DIGEST,
    FIELD_VALUE_TYPE,
    FIELD_PART,
    FIELD_PARTS,
    FIELD_TEXT,
    FIELD_BASE64,
    FIELD_GRAPH_ID,
    FIELD_COUNT
} agent_protocol_field_t;

/* JSON text, borrowed from the line. NULL: the member is absent. */
typedef struct agent_protocol_text_t {
    const char *at;
    apr_size_t length;
} agent_protocol_text_t;

typedef struct agent_protocol_fields_t {
    agent_protocol_text_t value[FIELD_COUNT];
} agent_protocol_fields_t;

/* Finds the members of the object at start, a line that has passed the scan.
 * Returns NULL, or the reason why it is refused, a constant. */
const char *agent_protocol_collect(agent_protocol_fields_t *fields,
                                   const char *start);

bool agent_protocol_equals(const agent_protocol_text_t *text, const char *word);

/* The first byte of a JSON value says its type: '{', '[', '"', 'n' ...; NUL:
 * the member is absent. */
char agent_protocol_kind(const agent_protocol_fields_t *fields,
                         agent_protocol_field_t field);

/* Whether the member is absent, null, or a value that begins with kind. */
bool agent_protocol_is_optional(const agent_protocol_fields_t *fields,
                                agent_protocol_field_t field, char kind);

/* A string of 1 to max printable ASCII characters without escapes. */
bool agent_protocol_word(agent_protocol_text_t *word,
                         const agent_protocol_text_t *value, apr_size_t max);

/* A string of at most max bytes without escapes, of printable characters: it
 * may be in a line of an event stream, which a line break or another control
 * character (also U+0080 to U+009F, U+2028, U+2029) could end. */
bool agent_protocol_text(agent_protocol_text_t *text,
                         const agent_protocol_text_t *value, apr_size_t max);

/* A number from 0 to max, of at most 18 digits. */
bool agent_protocol_number(apr_int64_t *number,
                           const agent_protocol_text_t *value, apr_int64_t max);

/* A UUID in lower case. */
bool agent_protocol_is_uuid(const agent_protocol_text_t *value);

/* A string of min to max bytes, as it is in the line, without its quotes. */
bool agent_protocol_is_text(const agent_protocol_text_t *value, apr_size_t min,
                            apr_size_t max);

/* Sets the key of a line about a run. Returns NULL, or the reason why the line
 * is refused, a constant; so do the functions below. */
const char *agent_protocol_read_key(agent_line_t *line,
                                    const agent_protocol_fields_t *fields);

/* Sets the key and the ack of a line. */
const char *agent_protocol_read_acked(agent_line_t *line,
                                      const agent_protocol_fields_t *fields);

/* Lines of type RECORD. */
const char *agent_protocol_read_blob(agent_line_t *line,
                                     const agent_protocol_fields_t *fields);
const char *agent_protocol_read_put(agent_line_t *line,
                                    const agent_protocol_fields_t *fields);
const char *agent_protocol_read_writes(agent_line_t *line,
                                       const agent_protocol_fields_t *fields);

#endif
