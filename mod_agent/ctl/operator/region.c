/* SPDX-License-Identifier: Apache-2.0 */
/* `agentctl region`; see region.h. */
#include "region.h"

#include <string.h>

#include "../../core/api_key.h"
#include "../../core/error.h"
#include "../../core/json.h"
#include "database.h"
#include "../base/output.h"
#include "record.h"

const ctl_option_t ctl_region_options[] = {CTL_DATABASE_OPTIONS,
                                           {NULL, NULL, 0, NULL}};

static const agent_statement_t read_region = {
    .name = "agent_get_region",
    .is_repeatable = true,
    .sql = "select code, body from agent.get_region()"};

int ctl_region_check(const ctl_arguments_t *arguments)
{
    const char *wanted = arguments->operand;
    json_object *record;
    const char *region;
    const char *body;

    if (!agent_api_key_is_region(wanted)) {
        ctl_error("expected the name of a region, got %s", wanted);
        return CTL_USAGE;
    }
    if (ctl_database_call(&body, arguments, &read_region, NULL) != CTL_DONE) {
        return CTL_FAILED;
    }
    record = ctl_record_parse(body, arguments->pool);
    region = agent_json_string(record, "region", "");
    if (record != NULL && strcmp(region, wanted) == 0) {
        return ctl_record_result(arguments, body, NULL);
    }
    if (record != NULL) {
        ctl_error("the database belongs to region %s, not to %s (%s)", region,
                  wanted, agent_error_code(AGENT_E_REGION_MISMATCH));
    }
    return CTL_FAILED;
}
