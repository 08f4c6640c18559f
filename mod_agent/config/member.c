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

enum { ANY, TEXT = 1, TEXTS = 2, LIST = 4, OBJECT = 8, FLAG = 16, NUMBER = 32 };

typedef struct member_t {
    const char *path;
    int types;
} member_t;

#define MEMBER(path, types, effect, advice) {path, types},
static const member_t members[] = {
#include "member.def"
};

#define MEMBERS (sizeof(members) / sizeof(members[0]))

/* The types of a member in words; each set that member.def has is one case. */
static const char *describe(int types)
{
    switch (types) {
    case TEXT:
        return "a text";
    case TEXTS:
        return "a list of texts";
    case LIST:
        return "a list";
    case OBJECT:
        return "an object";
    case FLAG:
        return "true or false";
    case NUMBER:
        return "a number";
    case LIST | FLAG:
        return "a list, true or false";
    default:
        return "a file name, a list of texts or an object";
    }
}

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
    for (const member_t *member = members; member < members + MEMBERS;
         member++) {
        json_object *value = agent_member_get(file, member->path);

        if (member->types != ANY && !is_of(value, member->types)) {
            *got = json_type_to_name(json_object_get_type(value));
            if ((member->types & TEXTS) != 0
                && json_object_is_type(value, json_type_array)) {
                *got = "other values in it";
            }
            /* Bounded: it returns with the first message. */
            return apr_psprintf(pool, "%s as %s", describe(member->types),
                                member->path);
        }
    }
    return NULL;
}
