/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/base/raw.c runners/builtin/base/value.c */
/* OBJECTS: runners/builtin/base/clean.c runners/builtin/base/text.c */
/* OBJECTS: runners/builtin/base/surrogates.c core/ */
/* JSON of models and tools that stays text: it has the same meaning for json-c,
 * and a second reading changes nothing. */
#include "fuzz.h"

#include <string.h>

#include "../../mod_agent/core/json.h"
#include "../../mod_agent/runners/builtin/base/raw.h"
#include "../../mod_agent/runners/builtin/base/value.h"

static void examine(const char *text, size_t length, apr_pool_t *pool)
{
    agent_raw_t value = runner_raw_read(text, length, pool);
    json_object *tree = runner_value_parse(text, length, pool);
    json_object *again;
    agent_raw_t second;

    if (value.length == 0) {
        must(tree == NULL || runner_value_depth(tree) > RUNNER_VALUE_DEPTH);
        return;
    }
    must(strlen(value.text) == value.length);
    must(strpbrk(value.text, "\r\n\t") == NULL);
    second = runner_raw_read(value.text, value.length, pool);
    must(second.length == value.length
         && memcmp(second.text, value.text, value.length) == 0);
    again = runner_value_parse(value.text, value.length, pool);
    must(strcmp(agent_json_print(tree, pool), agent_json_print(again, pool))
         == 0);
}
