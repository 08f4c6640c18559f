/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an operand; see operand.h. */
#include "operand.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <apr_strings.h>
#include <bsd/readpassphrase.h>

#include "../../core/api_key.h"
#include "../base/output.h"

/* Does not show what is typed. */
static bool read_terminal(char *line, size_t size, const char *prompt)
{
    return readpassphrase(prompt, line, size, RPP_ECHO_OFF) != NULL
        && *line != '\0';
}

static bool read_stream(char *line, size_t size)
{
    if (fgets(line, (int)size, stdin) == NULL) {
        return false;
    }
    line[strcspn(line, "\r\n")] = '\0';
    return true;
}

int ctl_operand_read(const char **out, const ctl_arguments_t *arguments,
                     const char *name)
{
    /* Longer than any operand: what is cut is none. */
    char line[2 * AGENT_API_KEY_SIZE];
    bool is_read;

    *out = arguments->operand;
    if (strcmp(arguments->operand, "-") != 0) {
        return CTL_DONE;
    }
    is_read = isatty(STDIN_FILENO)
        ? read_terminal(line, sizeof(line),
                        apr_pstrcat(arguments->pool, name, ": ", NULL))
        : read_stream(line, sizeof(line));
    if (!is_read) {
        ctl_error("expected %s on standard input, got none", name);
        return CTL_USAGE;
    }
    /* No operand has blanks: a text that is pasted may have some around it. */
    apr_collapse_spaces(line, line);
    *out = apr_pstrdup(arguments->pool, line);
    return CTL_DONE;
}
