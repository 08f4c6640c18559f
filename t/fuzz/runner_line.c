/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/runner/protocol/protocol.c */
/* OBJECTS: supervisor/runner/protocol/protocol_fields.c */
/* OBJECTS: supervisor/runner/protocol/protocol_record.c core/ */
/* A line from a runner, which may be any program. */
#include "fuzz.h"

#include <string.h>

#include "../../mod_agent/core/uuid.h"
#include "../../mod_agent/supervisor/runner/protocol/protocol.h"

static void examine(const char *text, size_t length, apr_pool_t *pool)
{
    agent_line_t line;
    char given[AGENT_UUID_SIZE];
    char parsed[AGENT_UUID_SIZE];

    memset(&line, 0, sizeof(line));
    if (agent_protocol_read(&line, text, length) != NULL) {
        return;
    }
    must(line.type <= AGENT_LINE_END);
    must(!line.success || !line.is_drained);
    if (line.type >= AGENT_LINE_WANT) {
        apr_cpystrn(given, line.key.run_id, sizeof(given));
        must(agent_uuid_parse(parsed, given));
        must(memcmp(parsed, line.key.run_id, sizeof(line.key.run_id)) == 0);
    }
}
