/* SPDX-License-Identifier: Apache-2.0 */
/* The connection of an operator; see database.h. */
#include "database.h"

#include <string.h>

#include <apr_strings.h>

#include "../../core/error.h"
#include "../../db/query.h"
#include "../base/output.h"

static const agent_db_settings_t settings = {
    .connect_timeout = apr_time_from_sec(10),
    .query_timeout = apr_time_from_sec(30)};

#define CONNECTION_KEY "agentctl connection"

/* Codes of refusals that the API does not have. */
#define NOT_AN_OPERATOR   "not_an_operator"
#define ROLE_NOT_ADMITTED "role_not_admitted"

/* A superuser would execute the functions of the schema with all of his
 * rights, and the audit log would not have the name of a person. */
static int refuse_superuser(const agent_db_t *db)
{
    if (!agent_db_is_superuser(db)) {
        return CTL_DONE;
    }
    ctl_error("the database's role is a superuser: connect as a member of "
              "agent_operator, to which `grant agent_operator to ROLE` adds it "
              "(" NOT_AN_OPERATOR ")");
    return CTL_FAILED;
}

/* libpq gives no SQLSTATE of a connection that failed. */
static bool is_of_role(const char *cause)
{
    return cause != NULL
        && (strstr(cause, "authentication failed") != NULL
            || (strstr(cause, "role ") != NULL
                && strstr(cause, "does not exist") != NULL));
}

/* Options, and their members of the API. */
static const struct {
    const char *pointer;
    const char *option;
    int index;
} members[] = {{"/name:", "--name:", CTL_NAME},
               {"/user_id:", "--user:", CTL_USER},
               {"/scopes:", "--scopes:", CTL_SCOPES}};

/* A detail may begin with the JSON pointer of a member of the API: the option
 * that was given for it is named, else the member. */
static const char *print_detail(const ctl_arguments_t *arguments,
                                const char *detail)
{
    /* Bounded: by the members. */
    for (apr_size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        size_t length = strlen(members[i].pointer);

        if (arguments->text[members[i].index] != NULL
            && strncmp(detail, members[i].pointer, length) == 0) {
            return apr_pstrcat(arguments->pool, members[i].option,
                               detail + length, NULL);
        }
    }
    return detail + (*detail == '/');
}

/* The last line ends with the code. */
static int report_failure(const ctl_arguments_t *arguments,
                          const agent_error_t *error)
{
    const char *detail = print_detail(arguments, error->detail);

    if (error->cause != NULL) {
        ctl_error("%s (%s) (%s)", detail, error->cause,
                  agent_error_code(error->id));
    }
    else {
        ctl_error("%s (%s)", detail, agent_error_code(error->id));
    }
    return CTL_FAILED;
}

static int report_connection(const ctl_arguments_t *arguments,
                             const agent_error_t *error)
{
    if (!is_of_role(error->cause)) {
        return report_failure(arguments, error);
    }
    ctl_error("the database refuses the role (%s)", error->cause);
    ctl_error("expected a role of the database that this user may use: as "
              "a superuser of it, createuser NAME and grant agent_operator "
              "to NAME, where NAME is the user who executes agentctl, or "
              "that of --database \"user=NAME ...\" (" ROLE_NOT_ADMITTED ")");
    return CTL_FAILED;
}

static int report(const ctl_arguments_t *arguments, const agent_error_t *error,
                  const char *sqlstate)
{
    if (strcmp(sqlstate, "42501") != 0) {
        return report_failure(arguments, error);
    }
    ctl_error("the database's role must be a member of agent_operator (%s) "
              "(" NOT_AN_OPERATOR ")",
              error->cause);
    return CTL_FAILED;
}

/* The connection, which is opened by the first call. */
static int get_connection(agent_db_t **db, const ctl_arguments_t *arguments)
{
    const char *conninfo = arguments->text[CTL_DATABASE];
    void *found = NULL;
    agent_error_t *err;

    apr_pool_userdata_get(&found, CONNECTION_KEY, arguments->pool);
    *db = found;
    if (*db != NULL) {
        return CTL_DONE;
    }
    if (agent_db_open(db, conninfo != NULL ? conninfo : "", "agentctl",
                      &settings, &err, arguments->pool)
        != APR_SUCCESS) {
        return report_connection(arguments, err);
    }
    apr_pool_userdata_setn(*db, CONNECTION_KEY, NULL, arguments->pool);
    return refuse_superuser(*db);
}

int ctl_database_call(const char **body, const ctl_arguments_t *arguments,
                      const agent_statement_t *statement,
                      const char *const *params)
{
    agent_db_result_t *result;
    agent_error_t *err;
    agent_db_t *db;

    if (get_connection(&db, arguments) != CTL_DONE) {
        return CTL_FAILED;
    }
    if (agent_db_query(&result, db, statement, params, &err, arguments->pool)
        != APR_SUCCESS) {
        return report(arguments, err, agent_db_sqlstate(db));
    }
    if (agent_db_read_code(body, result, &err, arguments->pool)
        != APR_SUCCESS) {
        return report(arguments, err, "");
    }
    return CTL_DONE;
}
