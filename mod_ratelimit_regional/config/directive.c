/* SPDX-License-Identifier: Apache-2.0 */
/* Parses values. */
#include "directive.h"

#include <apr_strings.h>

const char *rlr_directive_expect(const cmd_parms *cmd, const char *expected,
                                 const char *given)
{
    return apr_psprintf(cmd->pool, "%s: expected %s, got '%s'", cmd->cmd->name,
                        expected, given);
}

const char *rlr_directive_number(int *out, const cmd_parms *cmd,
                                 const char *arg, int low, int high)
{
    char *end;
    apr_int64_t value = apr_strtoi64(arg, &end, 10);

    if (*arg == '\0' || *end != '\0' || value < low || value > high) {
        return rlr_directive_expect(
            cmd,
            apr_psprintf(cmd->pool, "a whole number from %d to %d", low, high),
            arg);
    }
    *out = (int)value;
    return NULL;
}
