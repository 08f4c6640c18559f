/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of ids separated by spaces; see id_list.h. */
#include "id_list.h"

#include <string.h>

bool agent_id_list_next(const char **list, const char **id, apr_size_t *length)
{
    *id = *list + strspn(*list, " ");
    *length = strcspn(*id, " ");
    *list = *id + *length;
    return *length > 0;
}
