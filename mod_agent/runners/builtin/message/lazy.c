/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that stay text until their members are needed; see lazy.h. */
#include "lazy.h"

#include <stdlib.h>
#include <string.h>

#include <json-c/printbuf.h>

#include "core/json.h"
#include "runners/builtin/base/value.h"

/* The members that every run reads of every message. */
static const char *const noted[] = {"type", "id", "content"};

#define NOTED (sizeof(noted) / sizeof(noted[0]))

/* The place of a value in the text; length 0: the member is absent. */
typedef struct place_t {
    apr_uint32_t offset;
    apr_uint32_t length;
} place_t;

/* The content of a lazy message: its text, or, once it was opened, the tree. */
typedef struct content_t {
    json_object *tree;
    apr_size_t length;
    place_t places[NOTED];
    /* Followed by NUL. */
    char text[];
} content_t;

/*
 * NULL for any other value. The message itself is a boolean, which takes the
 * least memory; json-c gives no boolean of its own user data.
 */
static content_t *get_content(json_object *message)
{
    return json_object_is_type(message, json_type_boolean)
        ? json_object_get_userdata(message)
        : NULL;
}

/* The object with the members; NULL while the message is text. */
static json_object *get_tree(json_object *message)
{
    const content_t *content = get_content(message);

    return content != NULL ? content->tree : message;
}

static int print_text(json_object *message, struct printbuf *out, int level,
                      int flags)
{
    agent_raw_t text = runner_lazy_text(message);

    (void)level;
    (void)flags;
    return printbuf_memappend(out, text.text, (int)text.length);
}

/* json-c keeps what it prints for the lifetime of the object: a copy is printed
 * and freed. */
static int print_tree(json_object *message, struct printbuf *out, int level,
                      int flags)
{
    json_object *copy = runner_value_copy(get_tree(message));
    size_t length;
    const char *text = json_object_to_json_string_length(copy, flags, &length);
    int printed = printbuf_memappend(out, text, (int)length);

    (void)level;
    json_object_put(copy);
    return printed;
}

static void release_content(json_object *message, void *given)
{
    content_t *content = given;

    (void)message;
    json_object_put(content->tree);
    free(content);
}

static content_t *make_content(agent_raw_t text)
{
    content_t *content = malloc(sizeof(*content) + text.length + 1);

    /* The runner's malloc() reports that itself (base/memory.h). */
    if (content == NULL) {
        abort();
    }
    memset(content, 0, sizeof(*content));
    content->length = text.length;
    if (text.length > 0) {
        memcpy(content->text, text.text, text.length);
    }
    content->text[text.length] = '\0';
    return content;
}

static void note_member(place_t *places, const agent_member_t *member,
                        const char *start)
{
    for (size_t i = 0; i < NOTED; i++) {
        if (agent_raw_member_is(member, noted[i])) {
            places[i].offset = (apr_uint32_t)(member->value - start);
            places[i].length = (apr_uint32_t)member->value_length;
        }
    }
}

json_object *runner_lazy_read(const char **at)
{
    json_object *message = json_object_new_boolean(true);
    place_t places[NOTED] = {{0, 0}};
    const char *start = *at;
    agent_member_t member;
    content_t *content;

    while (agent_raw_member_next(&member, at)) {
        note_member(places, &member, start);
    }
    *at = agent_raw_end(*at);
    content = make_content((agent_raw_t){start, (apr_size_t)(*at - start)});
    memcpy(content->places, places, sizeof(places));
    json_object_set_serializer(message, print_text, content, release_content);
    return message;
}

agent_raw_t runner_lazy_text(json_object *message)
{
    const content_t *content = get_content(message);

    return content != NULL && content->tree == NULL
        ? (agent_raw_t){content->text, content->length}
        : (agent_raw_t){NULL, 0};
}

/* The content while the message has not been opened; NULL for any other
 * value. */
static const content_t *get_text(json_object *message)
{
    const content_t *content = get_content(message);

    return content != NULL && content->tree == NULL ? content : NULL;
}

/* A member; length 0 when it is absent. */
static agent_raw_t get_member(const content_t *content, const char *key)
{
    for (size_t i = 0; i < NOTED; i++) {
        if (strcmp(key, noted[i]) == 0) {
            return (agent_raw_t){content->text + content->places[i].offset,
                                 content->places[i].length};
        }
    }
    return agent_raw_get((agent_raw_t){content->text, content->length}, key);
}

bool runner_lazy_equals(json_object *message, const char *key, const char *text)
{
    const content_t *content = get_text(message);
    const char *value;

    if (content != NULL) {
        return agent_raw_equals(get_member(content, key), text);
    }
    value = agent_json_string(get_tree(message), key, NULL);
    return value != NULL && strcmp(value, text) == 0;
}

bool runner_lazy_has_text(json_object *message, const char *key)
{
    const content_t *content = get_text(message);
    agent_raw_t value;

    if (content == NULL) {
        return *agent_json_string(get_tree(message), key, "") != '\0';
    }
    value = get_member(content, key);
    return agent_raw_kind(value) == AGENT_RAW_STRING && value.length > 2;
}

const char *runner_lazy_string(json_object *message, const char *key,
                               const char *fallback, apr_pool_t *pool)
{
    const content_t *content = get_text(message);
    const char *text;

    if (content == NULL) {
        return agent_json_string(get_tree(message), key, fallback);
    }
    text = agent_raw_string(get_member(content, key), pool);
    return text != NULL ? text : fallback;
}

json_object *runner_lazy_open(json_object *message, apr_pool_t *pool)
{
    agent_raw_t text = runner_lazy_text(message);

    if (text.length > 0) {
        content_t *content = make_content((agent_raw_t){NULL, 0});
        agent_error_t *err = NULL;

        /* The text has passed the scan, so that it can be parsed. */
        runner_value_build(&content->tree, text, &err, pool);
        json_object_set_serializer(message, print_tree, content,
                                   release_content);
    }
    return get_tree(message);
}
