/* SPDX-License-Identifier: Apache-2.0 */
/* Errors, and the tables of errors.def; see error.h. */
#include "error.h"

#include <stdarg.h>
#include <string.h>

#include <apr_strings.h>

typedef struct error_row_t {
    int http;
    const char *code;
    const char *detail;
} error_row_t;

#define AGENT_ERROR(id, http, code, detail) {http, code, detail},
static const error_row_t error_rows[] = {
#include "errors.def"
};

typedef struct state_row_t {
    const char *state;
    agent_error_id_t id;
} state_row_t;

#define AGENT_SQLSTATE(state, id) {state, AGENT_E_##id},
static const state_row_t state_rows[] = {
#include "errors.def"
};

#define STATE_COUNT (sizeof(state_rows) / sizeof(state_rows[0]))

apr_status_t agent_error_set(agent_error_t **err, agent_error_id_t id,
                             const char *detail, const char *cause,
                             apr_pool_t *pool)
{
    agent_error_t *made = apr_pcalloc(pool, sizeof(*made));

    made->id = id;
    made->detail = apr_pstrdup(pool, detail ? detail : error_rows[id].detail);
    made->cause = cause ? apr_pstrdup(pool, cause) : NULL;
    made->http = error_rows[id].http;
    made->members = "";
    *err = made;
    return APR_EGENERAL;
}

apr_status_t agent_error_setf(agent_error_t **err, agent_error_id_t id,
                              apr_pool_t *pool, const char *format, ...)
{
    const char *detail;
    va_list args;

    va_start(args, format);
    detail = apr_pvsprintf(pool, format, args);
    va_end(args);
    return agent_error_set(err, id, detail, NULL, pool);
}

int agent_error_http(agent_error_id_t id)
{
    return error_rows[id].http;
}

const char *agent_error_code(agent_error_id_t id)
{
    return error_rows[id].code;
}

agent_error_id_t agent_error_from_code(const char *code)
{
    for (int i = 0; i < AGENT_E_COUNT; i++) {
        if (strcmp(error_rows[i].code, code) == 0) {
            return (agent_error_id_t)i;
        }
    }
    return AGENT_E_INTERNAL;
}

static agent_error_id_t find_state(const char *sqlstate, size_t length)
{
    for (size_t i = 0; i < STATE_COUNT; i++) {
        if (strlen(state_rows[i].state) == length
            && strncmp(state_rows[i].state, sqlstate, length) == 0) {
            return state_rows[i].id;
        }
    }
    return AGENT_E_INTERNAL;
}

agent_error_id_t agent_error_from_sqlstate(const char *sqlstate)
{
    agent_error_id_t id;

    if (sqlstate == NULL || strlen(sqlstate) != 5) {
        return AGENT_E_INTERNAL;
    }
    id = find_state(sqlstate, 5);
    return id != AGENT_E_INTERNAL ? id : find_state(sqlstate, 2);
}
