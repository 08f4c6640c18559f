/* SPDX-License-Identifier: Apache-2.0 */
/* The directives; conf/ratelimit_directives.conf explains each. */
#ifndef RLR_DIRECTIVES_H
#define RLR_DIRECTIVES_H

#include <httpd.h>
#include <http_config.h>

/* For the module record. */
extern const command_rec rlr_directives[];

#endif
