/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of single values; see check.h. They read the JSON text; json-c parses
 * only short values. */
#include "check.h"

#include <limits.h>
#include <string.h>

#include <apr_strings.h>

#include "../core/egress.h"
#include "../core/json.h"
#include "../core/uuid.h"
#include "../core/word.h"

/* Longest text of a number within any of the limits. */
#define NUMBER_BYTES 64
/* PostgreSQL compares each of these with all elements of a stored array. */
#define CONTAINED_ELEMENTS 64
/* Bounds of a metadata object, so that an index can hold it. */
#define METADATA_KEYS        64
#define METADATA_KEY_BYTES   64
#define METADATA_VALUE_BYTES 512
/* Longest text of a metadata value that may be short enough when unescaped. */
#define METADATA_TEXT_BYTES (8 * METADATA_VALUE_BYTES)
/* Bounds of configurable. */
#define CONFIGURABLE_MEMBERS 256
#define CONFIGURABLE_BYTES   65536

static const char *print_pointer(const agent_check_path_t *path)
{
    const char *above;

    if (path->above == NULL) {
        return "";
    }
    above = print_pointer(path->above);
    return path->key != NULL
        ? apr_pstrcat(path->pool, above, "/", path->key, NULL)
        : apr_psprintf(path->pool, "%s/%d", above, path->index);
}

apr_status_t agent_check_refuse(const agent_check_path_t *path,
                                const char *expected)
{
    const char *pointer = print_pointer(path);

    return agent_error_setf(path->err, AGENT_E_INVALID, path->pool,
                            "%s: expected %s.", *pointer ? pointer : "/",
                            expected);
}

agent_check_path_t agent_check_path_below(const agent_check_path_t *path,
                                          const char *key)
{
    return (agent_check_path_t){path, key, 0, path->err, path->pool};
}

agent_check_path_t agent_check_path_at(const agent_check_path_t *path,
                                       int index)
{
    return (agent_check_path_t){path, NULL, index, path->err, path->pool};
}

void agent_check_find(agent_raw_t *values, const agent_check_t *members,
                      agent_raw_t object)
{
    const char *at = object.text;
    agent_member_t member;

    while (agent_raw_member_next(&member, &at)) {
        for (int i = 0; members[i].key != NULL; i++) {
            if (*member.value != 'n'
                && agent_raw_member_is(&member, members[i].key)) {
                values[i] = (agent_raw_t){member.value, member.value_length};
                break;
            }
        }
    }
}

apr_status_t agent_check_members(const agent_check_t *members,
                                 agent_raw_t *values,
                                 const agent_check_path_t *path)
{
    for (; members->key != NULL; members++, values++) {
        agent_check_path_t below = agent_check_path_below(path, members->key);
        apr_status_t rv = APR_SUCCESS;

        if (values->length > 0) {
            rv = members->check(members, *values, &below);
        }
        else if (members->required) {
            rv = agent_check_refuse(&below, "a value: it is required");
        }
        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    return APR_SUCCESS;
}

static bool is_default(agent_raw_t value)
{
    const char *at = value.text;
    agent_member_t member;
    agent_raw_t element;

    switch (agent_raw_kind(value)) {
    case AGENT_RAW_BOOLEAN:
        return *value.text == 'f';
    case AGENT_RAW_STRING:
        return agent_raw_string_length(value) == 0;
    case AGENT_RAW_ARRAY:
        return !agent_raw_element_next(&element, &at);
    case AGENT_RAW_OBJECT:
        return !agent_raw_member_next(&member, &at);
    default:
        return false;
    }
}

apr_status_t agent_check_unsupported(const agent_check_t *check,
                                     agent_raw_t value,
                                     const agent_check_path_t *path)
{
    return is_default(value)
        ? APR_SUCCESS
        : agent_check_refuse(path, "none: it is not supported yet");
}

apr_status_t agent_check_any(const agent_check_t *check, agent_raw_t value,
                             const agent_check_path_t *path)
{
    return APR_SUCCESS;
}

apr_status_t agent_check_values(const agent_check_t *check, agent_raw_t value,
                                const agent_check_path_t *path)
{
    agent_raw_kind_t kind = agent_raw_kind(value);

    return kind == AGENT_RAW_OBJECT || kind == AGENT_RAW_ARRAY
        ? APR_SUCCESS
        : agent_check_refuse(path, "an object or an array");
}

apr_status_t agent_check_object(const agent_check_t *check, agent_raw_t value,
                                const agent_check_path_t *path)
{
    agent_raw_t values[AGENT_CHECK_MEMBERS] = {{NULL, 0}};

    if (agent_raw_kind(value) != AGENT_RAW_OBJECT) {
        return agent_check_refuse(path, "an object");
    }
    if (check->members == NULL) {
        return APR_SUCCESS;
    }
    agent_check_find(values, check->members, value);
    return agent_check_members(check->members, values, path);
}

apr_status_t agent_check_configurable(const agent_check_t *check,
                                      agent_raw_t value,
                                      const agent_check_path_t *path)
{
    bool is_object = agent_raw_kind(value) == AGENT_RAW_OBJECT;
    const char *at = value.text;
    agent_member_t member;

    if (value.length > CONFIGURABLE_BYTES) {
        return agent_check_refuse(path, "at most 65536 bytes of JSON");
    }
    for (int i = 0; is_object && agent_raw_member_next(&member, &at); i++) {
        if (i == CONFIGURABLE_MEMBERS) {
            return agent_check_refuse(path, "at most 256 members");
        }
    }
    return agent_check_object(check, value, path);
}

apr_status_t agent_check_text(const agent_check_t *check, agent_raw_t value,
                              const agent_check_path_t *path)
{
    apr_size_t length = agent_raw_string_length(value);

    if (agent_raw_kind(value) != AGENT_RAW_STRING
        || length < (apr_size_t)check->low
        || length > (apr_size_t)check->high) {
        return agent_check_refuse(
            path,
            apr_psprintf(path->pool, "a string of %d to %d bytes",
                         (int)check->low, (int)check->high));
    }
    return APR_SUCCESS;
}

apr_status_t agent_check_uuid(const agent_check_t *check, agent_raw_t value,
                              const agent_check_path_t *path)
{
    char id[AGENT_UUID_SIZE];

    return agent_raw_string_length(value) == AGENT_UUID_SIZE - 1
            && agent_uuid_parse(id, agent_raw_string(value, path->pool))
        ? APR_SUCCESS
        : agent_check_refuse(path, "a UUID");
}

apr_status_t agent_check_flag(const agent_check_t *check, agent_raw_t value,
                              const agent_check_path_t *path)
{
    return agent_raw_kind(value) == AGENT_RAW_BOOLEAN
        ? APR_SUCCESS
        : agent_check_refuse(path, "true or false");
}

/* The value as json-c parses it; NULL if its text is longer than most. */
static json_object *read_small(agent_raw_t value, apr_size_t most,
                               apr_pool_t *pool)
{
    json_object *object = NULL;
    agent_error_t *err;

    if (value.length <= most) {
        /* The text was scanned before; object stays NULL if this fails. */
        (void)!agent_json_parse(&object,
                                apr_pstrmemdup(pool, value.text, value.length),
                                value.length, &err, pool);
    }
    return object;
}

static bool is_in_range(const agent_check_t *check, agent_raw_t value,
                        apr_pool_t *pool)
{
    json_object *object = agent_raw_kind(value) == AGENT_RAW_NUMBER
        ? read_small(value, NUMBER_BYTES, pool)
        : NULL;
    double number = json_object_get_double(object);

    return object != NULL && number >= check->low && number <= check->high;
}

apr_status_t agent_check_minutes(const agent_check_t *check, agent_raw_t value,
                                 const agent_check_path_t *path)
{
    static const agent_check_t range = {.low = 0.01, .high = 5256000};

    return is_in_range(&range, value, path->pool)
        ? APR_SUCCESS
        : agent_check_refuse(path,
                             "minutes, a number from 0.01 to 5256000 (ten "
                             "years)");
}

apr_status_t agent_check_number(const agent_check_t *check, agent_raw_t value,
                                const agent_check_path_t *path)
{
    return is_in_range(check, value, path->pool)
        ? APR_SUCCESS
        : agent_check_refuse(path,
                             apr_psprintf(path->pool,
                                          "a number from %.0f to %.0f",
                                          check->low, check->high));
}

apr_status_t agent_check_integer(const agent_check_t *check, agent_raw_t value,
                                 const agent_check_path_t *path)
{
    if (agent_raw_kind(value) != AGENT_RAW_NUMBER
        || strcspn(value.text, ".eE") < value.length) {
        return agent_check_refuse(path, "a whole number");
    }
    return agent_check_number(check, value, path);
}

apr_status_t agent_check_word(const agent_check_t *check, agent_raw_t value,
                              const agent_check_path_t *path)
{
    for (const char *const *word = check->words; *word != NULL; word++) {
        if (agent_raw_equals(value, *word)) {
            return APR_SUCCESS;
        }
    }
    return agent_check_refuse(path, agent_word_print(check->words, path->pool));
}

apr_status_t agent_check_url(const agent_check_t *check, agent_raw_t value,
                             const agent_check_path_t *path)
{
    agent_egress_target_t target;
    const char *expected = "a URL";

    if (agent_raw_kind(value) == AGENT_RAW_STRING) {
        expected = agent_egress_read_url(
            &target, agent_raw_string(value, path->pool), path->pool);
    }
    return expected ? agent_check_refuse(path, expected) : APR_SUCCESS;
}

/* Checks each element of an array of at most `most`. */
static apr_status_t check_elements(const agent_check_t *check,
                                   agent_raw_t array, int most,
                                   const char *expected,
                                   const agent_check_path_t *path)
{
    const char *at = array.text;
    agent_raw_t element;

    for (int i = 0; agent_raw_element_next(&element, &at); i++) {
        agent_check_path_t below = agent_check_path_at(path, i);
        apr_status_t rv = i < most ? check->check(check, element, &below)
                                   : agent_check_refuse(path, expected);

        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    return APR_SUCCESS;
}

apr_status_t agent_check_objects(const agent_check_t *check, agent_raw_t value,
                                 const agent_check_path_t *path)
{
    const agent_check_t object = {.check = agent_check_object,
                                  .members = check->members};
    const char *expected = apr_psprintf(path->pool, "%d to %d objects",
                                        (int)check->low, (int)check->high);

    if (agent_raw_kind(value) != AGENT_RAW_ARRAY
        || (check->low > 0 && *agent_raw_element_find(value.text) == '\0')) {
        return agent_check_refuse(path, expected);
    }
    return check_elements(&object, value, (int)check->high, expected, path);
}

/* The React hook sends an empty array for a page that reads no event. */
apr_status_t agent_check_words(const agent_check_t *check, agent_raw_t value,
                               const agent_check_path_t *path)
{
    const agent_check_t word = {.check = agent_check_word,
                                .words = check->words};

    return agent_raw_kind(value) == AGENT_RAW_ARRAY
        ? check_elements(&word, value, 64, "at most 64 elements", path)
        : agent_check_word(check, value, path);
}

static apr_status_t check_string(const agent_check_t *check, agent_raw_t value,
                                 const agent_check_path_t *path)
{
    return agent_raw_kind(value) == AGENT_RAW_STRING
        ? APR_SUCCESS
        : agent_check_refuse(path, "a string");
}

apr_status_t agent_check_texts(const agent_check_t *check, agent_raw_t value,
                               const agent_check_path_t *path)
{
    const agent_check_t text = {.check = check_string};

    return agent_raw_kind(value) == AGENT_RAW_ARRAY
        ? check_elements(&text, value, INT_MAX, NULL, path)
        : agent_check_refuse(path, "an array of strings");
}

static apr_status_t check_key(const agent_check_t *check, agent_raw_t value,
                              const agent_check_path_t *path)
{
    apr_size_t length = agent_raw_string_length(value);

    if (agent_raw_kind(value) != AGENT_RAW_STRING) {
        return agent_check_refuse(path, "a string");
    }
    return length >= 1 && length <= 64
        ? APR_SUCCESS
        : agent_check_refuse(path->above, "strings of 1 to 64 bytes");
}

/* The strings become parts of a URL. */
apr_status_t agent_check_keys(const agent_check_t *check, agent_raw_t value,
                              const agent_check_path_t *path)
{
    const agent_check_t key = {.check = check_key};

    return agent_raw_kind(value) == AGENT_RAW_ARRAY
        ? check_elements(&key, value, 64, "at most 64 strings", path)
        : agent_check_refuse(path, "an array of strings");
}

apr_status_t agent_check_uuids(const agent_check_t *check, agent_raw_t value,
                               const agent_check_path_t *path)
{
    const char *expected = apr_psprintf(path->pool, "an array of 1 to %d UUIDs",
                                        (int)check->high);
    const agent_check_t uuid = {.check = agent_check_uuid};
    const char *at = value.text;
    agent_raw_t first;

    return agent_raw_kind(value) == AGENT_RAW_ARRAY
            && agent_raw_element_next(&first, &at)
        ? check_elements(&uuid, value, (int)check->high, expected, path)
        : agent_check_refuse(path, expected);
}

apr_status_t agent_check_nodes(const agent_check_t *check, agent_raw_t value,
                               const agent_check_path_t *path)
{
    if (agent_raw_kind(value) == AGENT_RAW_ARRAY) {
        return agent_check_texts(check, value, path);
    }
    return agent_raw_equals(value, "*")
        ? APR_SUCCESS
        : agent_check_refuse(path, "\"*\" or an array of strings");
}

/* Bytes of the value without white space and unneeded escapes. */
static apr_size_t measure_value(agent_raw_t value, apr_pool_t *pool)
{
    apr_size_t length = value.length;
    apr_pool_t *scratch;
    json_object *object;

    if (length <= METADATA_VALUE_BYTES) {
        return length;
    }
    apr_pool_create(&scratch, pool);
    object = read_small(value, METADATA_TEXT_BYTES, scratch);
    if (object != NULL) {
        json_object_to_json_string_length(
            object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE,
            &length);
    }
    apr_pool_destroy(scratch);
    return length;
}

apr_status_t agent_check_metadata(const agent_check_t *check, agent_raw_t value,
                                  const agent_check_path_t *path)
{
    const char *at = value.text;
    agent_member_t member;

    if (agent_raw_kind(value) != AGENT_RAW_OBJECT) {
        return agent_check_refuse(path, "an object");
    }
    for (int i = 0; agent_raw_member_next(&member, &at); i++) {
        agent_raw_t raw = {member.value, member.value_length};
        agent_raw_t key = {member.key - 1, member.key_length + 2};
        apr_size_t length = agent_raw_string_length(key);

        if (i == METADATA_KEYS) {
            return agent_check_refuse(path, "at most 64 keys");
        }
        if (length == 0 || length > METADATA_KEY_BYTES) {
            return agent_check_refuse(path, "keys of 1 to 64 bytes");
        }
        if (measure_value(raw, path->pool) > METADATA_VALUE_BYTES) {
            agent_check_path_t below = agent_check_path_below(
                path, agent_raw_string(key, path->pool));

            return agent_check_refuse(&below, "at most 512 bytes of JSON");
        }
    }
    return APR_SUCCESS;
}

/* Elements of the arrays in a value, at most `most` + 1. */
static int count_elements(agent_raw_t value, int most)
{
    const char *at = value.text;
    agent_member_t member;
    agent_raw_t element;
    int count = 0;

    if (agent_raw_kind(value) == AGENT_RAW_ARRAY) {
        while (count <= most && agent_raw_element_next(&element, &at)) {
            count += 1 + count_elements(element, most);
        }
    }
    else if (agent_raw_kind(value) == AGENT_RAW_OBJECT) {
        while (count <= most && agent_raw_member_next(&member, &at)) {
            agent_raw_t below = {member.value, member.value_length};

            count += count_elements(below, most);
        }
    }
    return count;
}

apr_status_t agent_check_filter(const agent_check_t *check, agent_raw_t value,
                                const agent_check_path_t *path)
{
    if (count_elements(value, CONTAINED_ELEMENTS) > CONTAINED_ELEMENTS) {
        return agent_check_refuse(path, "at most 64 elements of arrays");
    }
    return agent_check_metadata(check, value, path);
}
