/* SPDX-License-Identifier: Apache-2.0 */
/* The types of the members of langgraph.json; see member.h. Nothing of a value
 * is quoted. */
#include "member.h"

#include <stdbool.h>
#include <string.h>

#include <apr_strings.h>

#include "../core/json.h"

/* The longest name of a member, in bytes. */
#define NAME_SIZE 64

enum { TEXT = 1, TEXTS = 2, LIST = 4, OBJECT = 8, FLAG = 16, NUMBER = 32 };

typedef struct member_t {
    const char *path;
    int types;
    const char *expected;
} member_t;

static const member_t members[] = {
    {"dependencies", TEXTS, "a list of texts"},
    {"env", TEXT | TEXTS | OBJECT, "a file name, a list of texts or an object"},
    {"python_version", TEXT, "a text"},
    {"node_version", TEXT, "a text"},
    {"pip_config_file", TEXT, "a text"},
    {"pip_installer", TEXT, "a text"},
    {"source", OBJECT, "an object"},
    {"source.kind", TEXT, "a text"},
    {"source.root", TEXT, "a text"},
    {"source.package", TEXT, "a text"},
    {"auth", OBJECT, "an object"},
    {"encryption", OBJECT, "an object"},
    {"checkpointer", OBJECT, "an object"},
    {"checkpointer.serde", OBJECT, "an object"},
    {"checkpointer.serde.allowed_json_modules", LIST | FLAG,
     "a list, true or false"},
    {"checkpointer.serde.allowed_msgpack_modules", LIST | FLAG,
     "a list, true or false"},
    {"checkpointer.serde.pickle_fallback", FLAG, "true or false"},
    {"checkpointer.ttl", OBJECT, "an object"},
    {"checkpointer.ttl.strategy", TEXT, "a text"},
    {"checkpointer.ttl.default_ttl", NUMBER, "a number"},
    {"store", OBJECT, "an object"},
    {"store.ttl", OBJECT, "an object"},
    {"store.ttl.default_ttl", NUMBER, "a number"},
    {"http", OBJECT, "an object"},
    {"http.mount_prefix", TEXT, "a text"},
    {"http.configurable_headers", OBJECT, "an object"},
    {"http.configurable_headers.includes", TEXTS, "a list of texts"},
    {"http.configurable_headers.excludes", TEXTS, "a list of texts"},
    {"http.cors", OBJECT, "an object"},
    {"http.cors.allow_origins", TEXTS, "a list of texts"},
    {"http.cors.allow_origin_regex", TEXT, "a text"},
    {"http.cors.allow_methods", TEXTS, "a list of texts"},
    {"http.cors.allow_headers", TEXTS, "a list of texts"},
    {"http.cors.expose_headers", TEXTS, "a list of texts"},
    {"http.cors.allow_credentials", FLAG, "true or false"},
    {"http.cors.max_age", NUMBER, "a number"},
    {"http.disable_assistants", FLAG, "true or false"},
    {"http.disable_threads", FLAG, "true or false"},
    {"http.disable_runs", FLAG, "true or false"},
    {"http.disable_store", FLAG, "true or false"},
    {"http.disable_meta", FLAG, "true or false"},
    {"http.disable_webhooks", FLAG, "true or false"},
    {"webhooks", OBJECT, "an object"},
    {"webhooks.env_prefix", TEXT, "a text"},
    {"webhooks.headers", OBJECT, "an object"},
    {"webhooks.url", OBJECT, "an object"},
    {"webhooks.url.allowed_ports", LIST, "a list"},
    {"webhooks.url.allowed_domains", TEXTS, "a list of texts"},
    {"webhooks.url.require_https", FLAG, "true or false"},
    {NULL, 0, NULL}};

json_object *agent_member_get(json_object *file, const char *path)
{
    json_object *value = file;
    char name[NAME_SIZE];

    while (json_object_is_type(value, json_type_object)) {
        size_t length = strcspn(path, ".");

        apr_cpystrn(name, path, length < NAME_SIZE ? length + 1 : NAME_SIZE);
        value = agent_json_get(value, name);
        if (path[length] == '\0') {
            return value;
        }
        path += length + 1;
    }
    return NULL;
}

static bool has_texts_only(json_object *list)
{
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        if (!json_object_is_type(json_object_array_get_idx(list, i),
                                 json_type_string)) {
            return false;
        }
    }
    return true;
}

static bool is_of(json_object *value, int types)
{
    switch (json_object_get_type(value)) {
    case json_type_string:
        return (types & TEXT) != 0;
    case json_type_object:
        return (types & OBJECT) != 0;
    case json_type_int:
    case json_type_double:
        return (types & NUMBER) != 0;
    case json_type_boolean:
        return (types & FLAG) != 0;
    case json_type_array:
        return (types & LIST) != 0
            || ((types & TEXTS) != 0 && has_texts_only(value));
    default:
        return value == NULL;
    }
}

const char *agent_member_check(const char **got, json_object *file,
                               apr_pool_t *pool)
{
    for (const member_t *member = members; member->path != NULL; member++) {
        json_object *value = agent_member_get(file, member->path);

        if (!is_of(value, member->types)) {
            *got = json_type_to_name(json_object_get_type(value));
            if ((member->types & TEXTS) != 0
                && json_object_is_type(value, json_type_array)) {
                *got = "other values in it";
            }
            /* Bounded: it returns with the first message. */
            return apr_psprintf(pool, "%s as %s", member->expected,
                                member->path);
        }
    }
    return NULL;
}
