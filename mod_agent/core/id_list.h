/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of ids separated by spaces, as in notifications and datagrams. */
#ifndef AGENT_CORE_ID_LIST_H
#define AGENT_CORE_ID_LIST_H

#include <stdbool.h>

#include <apr.h>

/*
 * Takes the next id from *list: *id points to its *length bytes, borrowed and
 * not terminated. False at the end of the list. The bytes are not checked and
 * need not be a UUID.
 */
bool agent_id_list_next(const char **list, const char **id, apr_size_t *length);

#endif
