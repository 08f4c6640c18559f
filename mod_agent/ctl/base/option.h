/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of agentctl: tables of commands and their options, from
 * which the usage texts are printed too. */
#ifndef AGENT_CTL_OPTION_H
#define AGENT_CTL_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#include <apr_pools.h>

#include "status.h"

/* Indexes of the texts of options with a value. */
typedef enum ctl_text_t {
    CTL_ACCOUNT,
    CTL_BACKUP_RETENTION,
    CTL_CONFIRM,
    CTL_DATABASE,
    CTL_DEPLOYMENT,
    CTL_EXPIRES,
    CTL_KIND,
    CTL_LOG_RETENTION,
    CTL_MEMORY,
    CTL_NAME,
    CTL_NODE,
    /* The operand, given as an option in its place. */
    CTL_OPERAND,
    CTL_OVERLAP,
    CTL_PYTHON,
    CTL_RUNNERS,
    CTL_SCOPES,
    CTL_TIMEOUT,
    CTL_USER,
    CTL_TEXTS
} ctl_text_t;

/* An option without a value. */
typedef enum ctl_flag_t {
    CTL_IGNORE_AUTH,
    CTL_JSON,
    CTL_SCHEMAS,
    CTL_FLAGS
} ctl_flag_t;

typedef struct ctl_option_t {
    /* NULL after the last one. */
    const char *name;
    /* The name of the value in the usage; NULL: there is none. */
    const char *value;
    /* A ctl_text_t or, without a value, a ctl_flag_t. */
    int index;
    /* Lines are at most 56 characters long. */
    const char *help;
} ctl_option_t;

typedef struct ctl_arguments_t {
    /* The values as given; NULL or false: not given. */
    const char *text[CTL_TEXTS];
    bool flag[CTL_FLAGS];
    /* NULL: the command has none. */
    const char *operand;
    apr_pool_t *pool;
} ctl_arguments_t;

typedef struct ctl_command_t {
    /* `build`, or `account create`. */
    const char *name;
    /* The name of the operand in the usage; NULL: there is none. */
    const char *operand;
    /* The text of --help. */
    const char *summary;
    const ctl_option_t *options;
    /* Returns the exit status. */
    int (*run)(const ctl_arguments_t *arguments);
} ctl_command_t;

/*
 * Executes the command that argv names, of commands, whose last one has no
 * name, with its arguments in pool. Returns its exit status; CTL_USAGE, after
 * printing why, if there is none or the options are wrong. `--help` prints the
 * usage, `--version` the version.
 */
int ctl_option_run(const ctl_command_t *commands, int argc, char **argv,
                   apr_pool_t *pool);

#endif
