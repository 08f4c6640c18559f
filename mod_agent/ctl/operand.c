/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an operand; see operand.h. */
#include "operand.h"

#include <stdio.h>
#include <string.h>

#include <apr_strings.h>

#include "../core/api_key.h"
#include "output.h"

int ctl_operand_read(const char **out, const ctl_arguments_t *arguments,
                     const char *name)
{
    /* Longer than any operand: what is cut is none. */
    char line[2 * AGENT_API_KEY_SIZE];

    *out = arguments->operand;
    if (strcmp(arguments->operand, "-") != 0) {
        return CTL_DONE;
    }
    if (fgets(line, sizeof(line), stdin) == NULL) {
        ctl_error("expected %s on standard input, got none", name);
        return CTL_USAGE;
    }
    line[strcspn(line, "\r\n")] = '\0';
    *out = apr_pstrdup(arguments->pool, line);
    return CTL_DONE;
}
