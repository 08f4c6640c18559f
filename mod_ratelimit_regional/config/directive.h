/* SPDX-License-Identifier: Apache-2.0 */
/* Values of directives, and the errors of those that are wrong. */
#ifndef RLR_DIRECTIVE_H
#define RLR_DIRECTIVE_H

#include <httpd.h>
#include <http_config.h>

/* Returns the error "DIRECTIVE: expected ..., got '...'". */
const char *rlr_directive_expect(const cmd_parms *cmd, const char *expected,
                                 const char *given);

/* Parses a whole number from low to high. Returns NULL, or the error. */
const char *rlr_directive_number(int *out, const cmd_parms *cmd,
                                 const char *arg, int low, int high);

#endif
