/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings once a minute, in all processes together: they are counted in the
 * shared table. */
#ifndef RLR_WARNING_H
#define RLR_WARNING_H

#include <stdbool.h>
#include <stdint.h>

#include "../config/vhost.h"

/* Whether the warning of this name is due: once a minute. */
bool rlr_warning_is_due(const rlr_vhost_t *vhost, const char *warning);

/* Counts an event and returns the number of this name in the last minute.
 * Independent of the warning of the same name. */
uint32_t rlr_warning_count(const rlr_vhost_t *vhost, const char *event);

#endif
