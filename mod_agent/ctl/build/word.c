/* SPDX-License-Identifier: Apache-2.0 */
/* Words of langgraph.json; see word.h. */
#include "word.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "../../core/json.h"
#include "../base/output.h"

#define WORD_MAX   255
#define JOINED_MAX 4096

bool ctl_word_is(json_object *value)
{
    const char *text = json_object_get_string(value);

    if (text == NULL || text[0] == '\0' || strlen(text) > WORD_MAX) {
        return false;
    }
    for (; *text != '\0'; text++) {
        if (!apr_isalnum(*text) && strchr("./:*_-", *text) == NULL) {
            return false;
        }
    }
    return true;
}

const char *ctl_word_join(json_object *value, const char *path,
                          const char *directive, const char *separator,
                          apr_pool_t *pool)
{
    bool is_list = json_object_is_type(value, json_type_array);
    size_t count = is_list ? json_object_array_length(value) : 1;
    const char *line = "";

    for (size_t i = 0; i < count; i++) {
        json_object *word = is_list ? json_object_array_get_idx(value, i)
                                    : value;

        if (!ctl_word_is(word)) {
            ctl_warn(
                "langgraph.json: %s is left out: %s cannot be an argument of "
                "%s",
                path, agent_json_print(word, pool), directive);
            return NULL;
        }
        /* Bounded: a file of 256 KB, and lists of few words. */
        line = apr_pstrcat(pool, line, i > 0 ? separator : "",
                           json_object_get_string(word), NULL);
        if (strlen(line) > JOINED_MAX) {
            ctl_warn("langgraph.json: %s is left out: it is too long", path);
            return NULL;
        }
    }
    return line;
}

bool ctl_word_has(json_object *list, const char *text)
{
    size_t count = json_object_is_type(list, json_type_array)
        ? json_object_array_length(list)
        : 0;

    for (size_t i = 0; i < count; i++) {
        const char *item = json_object_get_string(
            json_object_array_get_idx(list, i));

        if (item != NULL && strcmp(item, text) == 0) {
            return true;
        }
    }
    return false;
}

/* Escapes the two characters of words that mean something else in an
 * expression. */
const char *ctl_word_escape(const char *word, apr_pool_t *pool)
{
    char *escaped = apr_palloc(pool, 2 * strlen(word) + 1);
    char *end = escaped;

    for (; *word != '\0'; word++) {
        if (*word == '.' || *word == '*') {
            *end++ = '\\';
        }
        *end++ = *word;
    }
    *end = '\0';
    return escaped;
}

/* httpd takes all other bytes as they are. */
const char *ctl_word_quote(const char *text, apr_pool_t *pool)
{
    char *quoted = apr_palloc(pool, 2 * strlen(text) + 3);
    char *end = quoted;

    *end++ = '"';
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            *end++ = '\\';
        }
        *end++ = *text;
    }
    *end++ = '"';
    *end = '\0';
    return quoted;
}

/* httpd replaces ${NAME} in quotes too, and a line has no way to escape it.
 * ctl_print() replaces control characters, of UTF-8 those of two bytes too. */
bool ctl_word_can_quote(const char *text)
{
    if (strstr(text, "${") != NULL) {
        return false;
    }
    for (const unsigned char *byte = (const unsigned char *)text; *byte != '\0';
         byte++) {
        if (*byte < 0x20 || *byte == 0x7F
            || (*byte == 0xC2 && byte[1] >= 0x80 && byte[1] < 0xA0)) {
            return false;
        }
    }
    return true;
}
