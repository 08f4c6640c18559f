/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/ model/schema.c model/schema_checkpoint.c model/field.c */
/* OBJECTS: model/check.c */
/* OBJECTS: http/request.c */
/* OBJECTS: runners/builtin/message/ runners/builtin/base/clean.c */
/* OBJECTS: runners/builtin/base/raw.c runners/builtin/base/value.c */
/* OBJECTS: runners/builtin/base/text.c */
/* OBJECTS: runners/builtin/base/surrogates.c runners/builtin/base/problem.c */
/*
 * Reads random bodies and query strings, each twice: the second time with one
 * of its dimensions multiplied by four. growth.t runs this under callgrind and
 * compares.
 *
 *   growth SEED CASES
 *
 * Prints a line for each reading, "CASE FUNCTION DIMENSION GROWN TEXT BYTES":
 * the length of the text and the bytes that were allocated. callgrind writes
 * the instructions of each to a file of its own, in the same order.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <apr_pools.h>
#include <valgrind/callgrind.h>

#include "../../mod_agent/core/json.h"
#include "../../mod_agent/http/request.h"
#include "../../mod_agent/model/schema.h"
#include "../../mod_agent/runners/builtin/message/message.h"
#include "../../mod_agent/runners/builtin/message/reducer.h"

/* ---- memory ---- */

static size_t allocated;

/* Not with a sanitizer, which replaces malloc(). */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size)
{
    allocated += size;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    allocated += count * size;
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    allocated += size;
    return __libc_realloc(old, size);
}
#endif

/* ---- bodies ---- */

typedef enum dimension_t {
    /* Letters of the key over the list. */
    OUTER,
    ITEMS,
    /* Members, elements or blocks of an item. */
    MEMBERS,
    /* Letters of their keys. */
    KEY,
    STRING,
    ESCAPES,
    DIGITS,
    /* Arrays around the list. */
    DEPTH,
    DIMENSIONS
} dimension_t;

static const char *const dimension_names[] = {
    "outer", "items", "members", "key", "string", "escapes", "digits", "depth"};

typedef enum item_t {
    ITEM_EMPTY_OBJECT,
    ITEM_EMPTY_ARRAY,
    ITEM_STRING,
    ITEM_NUMBERS,
    ITEM_OBJECT,
    ITEM_ESCAPED_OBJECT,
    ITEM_MESSAGE,
    ITEM_BLOCKS,
    ITEM_KINDS
} item_t;

/* The position of the list in the body. */
typedef struct kind_t {
    const char *before;
    const char *after;
} kind_t;

static const kind_t kinds[] = {
    {"{\"assistant_id\":\"agent\",\"input\":", "}"},
    {"{\"assistant_id\":\"agent\",\"x\":", "}"},
    {"{\"assistant_id\":\"agent\",\"config\":{\"x\":", "}}"},
    {"{\"assistant_id\":\"agent\",\"command\":{\"resume\":", "}}"}};

typedef struct body_t {
    item_t item;
    unsigned kind;
    unsigned size[DIMENSIONS];
} body_t;

static uint64_t state;

/* xorshift64*; from 0 to below. */
static unsigned draw(unsigned below)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (unsigned)((state * 2685821657736338717ULL) >> 33) % below;
}

/* Small items are repeated more often. */
static unsigned count_items(const body_t *body)
{
    switch (body->item) {
    case ITEM_EMPTY_OBJECT:
    case ITEM_EMPTY_ARRAY:
        return 500 + draw(2500);
    case ITEM_STRING:
    case ITEM_MESSAGE:
        return 50 + draw(200);
    default:
        return body->size[MEMBERS] >= 300 ? 1 : 5 + draw(20);
    }
}

static void draw_body(body_t *body)
{
    unsigned few = 1 + draw(4);
    unsigned many = 20 + draw(40);
    /* Alone in the list. */
    unsigned most = 300 + draw(700);

    body->item = (item_t)draw(ITEM_KINDS);
    body->kind = draw(sizeof(kinds) / sizeof(*kinds));
    body->size[OUTER] = 1 + (draw(2) ? draw(6000) : 0);
    body->size[MEMBERS] = draw(2) ? few : draw(2) ? many : most;
    body->size[KEY] = 1 + (draw(3) ? draw(10) : draw(100));
    body->size[STRING] = draw(3) ? draw(20) : draw(300);
    body->size[ESCAPES] = draw(2) ? 0 : draw(20);
    body->size[DIGITS] = 1 + draw(9);
    body->size[DEPTH] = draw(25);
    body->size[ITEMS] = count_items(body);
}

static void put_many(FILE *out, const char *text, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        fputs(text, out);
    }
}

static void put_string(FILE *out, const body_t *body)
{
    fputc('"', out);
    put_many(out, "s", body->size[STRING]);
    put_many(out, "\\u00e9", body->size[ESCAPES]);
    fputc('"', out);
}

static void put_number(FILE *out, const body_t *body)
{
    put_many(out, "7", body->size[DIGITS]);
}

static void put_member(FILE *out, const body_t *body, unsigned number)
{
    if (body->item == ITEM_BLOCKS) {
        fputs("{\"type\":\"text\",\"text\":", out);
        put_string(out, body);
        fputc('}', out);
        return;
    }
    if (body->item != ITEM_NUMBERS) {
        fputs(body->item == ITEM_ESCAPED_OBJECT ? "\"\\u006b" : "\"k", out);
        put_many(out, "k", body->size[KEY]);
        fprintf(out, "%u\":", number);
        put_string(out, body);
        return;
    }
    put_number(out, body);
}

static void put_members(FILE *out, const body_t *body, char open, char close)
{
    fputc(open, out);
    for (unsigned i = 0; i < body->size[MEMBERS]; i++) {
        if (i > 0) {
            fputc(',', out);
        }
        put_member(out, body, i);
    }
    fputc(close, out);
}

static void put_item(FILE *out, const body_t *body)
{
    switch (body->item) {
    case ITEM_EMPTY_OBJECT:
        fputs("{}", out);
        break;
    case ITEM_EMPTY_ARRAY:
        fputs("[]", out);
        break;
    case ITEM_STRING:
        put_string(out, body);
        break;
    case ITEM_NUMBERS:
        put_members(out, body, '[', ']');
        break;
    case ITEM_MESSAGE:
        fputs("{\"role\":\"user\",\"content\":", out);
        put_string(out, body);
        fputc('}', out);
        break;
    case ITEM_BLOCKS:
        fputs("{\"role\":\"user\",\"content\":", out);
        put_members(out, body, '[', ']');
        fputc('}', out);
        break;
    default:
        put_members(out, body, '{', '}');
    }
}

static void put_list(FILE *out, const body_t *body)
{
    fputc('[', out);
    for (unsigned i = 0; i < body->size[ITEMS]; i++) {
        if (i > 0) {
            fputc(',', out);
        }
        put_item(out, body);
    }
    fputc(']', out);
}

/* The text of a body; the caller frees it. */
static char *print_body(const body_t *body)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    fputs(kinds[body->kind].before, out);
    fputs("{\"", out);
    put_many(out, "k", body->size[OUTER]);
    fputs("\":", out);
    put_many(out, "[", body->size[DEPTH]);
    put_list(out, body);
    put_many(out, "]", body->size[DEPTH]);
    fputs("}", out);
    fputs(kinds[body->kind].after, out);
    fclose(out);
    return text;
}

static char *print_messages(const body_t *body)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    put_list(out, body);
    fclose(out);
    return text;
}

/* ---- query strings ---- */

typedef enum query_dimension_t {
    PARAMS,
    NAME,
    VALUE,
    QUERY_ESCAPES,
    WORDS,
    QUERY_DIMENSIONS
} query_dimension_t;

static const char *const query_dimension_names[] = {"params", "name", "value",
                                                    "escapes", "words"};

typedef struct query_t {
    unsigned size[QUERY_DIMENSIONS];
} query_t;

/* The grown values fit the limits of a query string and of a request line. */
static void draw_query(query_t *query)
{
    query->size[PARAMS] = 1 + draw(AGENT_QUERY_PARAMS / 4 - 1);
    query->size[NAME] = 1 + draw(10);
    query->size[VALUE] = draw(20);
    query->size[QUERY_ESCAPES] = draw(2) ? 0 : draw(6);
    query->size[WORDS] = draw(250);
}

/* The text of a query string; the caller frees it. */
static char *print_query(const query_t *query)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    fputs("select=status", out);
    put_many(out, ",run_id", query->size[WORDS]);
    for (unsigned i = 1; i < query->size[PARAMS]; i++) {
        fputc('&', out);
        put_many(out, "n", query->size[NAME]);
        fputc('=', out);
        put_many(out, "v", query->size[VALUE]);
        put_many(out, "%C3%A9", query->size[QUERY_ESCAPES]);
    }
    fclose(out);
    return text;
}

/* Replaces httpd's function; escapes are well-formed. */
int ap_unescape_urlencoded(char *text)
{
    char *out = text;

    for (; *text != '\0'; text++) {
        if (*text == '%') {
            char digits[] = {text[1], text[2], '\0'};

            *out++ = (char)strtol(digits, NULL, 16);
            text += 2;
        }
        else {
            *out++ = *text;
        }
    }
    *out = '\0';
    return OK;
}

/* ---- readings ---- */

static void must(bool holds, const char *what)
{
    if (!holds) {
        printf("Bail out! %s\n", what);
        exit(1);
    }
}

static void read_request(const char *text, apr_pool_t *pool)
{
    const agent_fields_t *fields;
    agent_error_t *err = NULL;

    must(agent_json_scan_request(text, strlen(text), &err, pool) == APR_SUCCESS
             && agent_schema_run(&fields, agent_raw_read(text), &err, pool)
                 == APR_SUCCESS
             && agent_field_string(fields, "assistant_id", NULL) != NULL,
         "a body is refused");
}

static void read_line(const char *text, apr_pool_t *pool)
{
    json_object *line;
    agent_error_t *err = NULL;

    must(agent_json_parse(&line, text, strlen(text), &err, pool) == APR_SUCCESS,
         "a line is refused");
}

static void read_messages(const char *text, apr_pool_t *pool)
{
    json_object *given;
    json_object *merged = NULL;
    agent_error_t *err = NULL;
    runner_problem_t *problem = NULL;

    must(agent_json_parse(&given, text, strlen(text), &err, pool) == APR_SUCCESS
             && runner_reducer_apply(&merged, NULL, given, &problem, pool)
                 == APR_SUCCESS,
         "messages are refused");
    for (size_t i = 0; i < json_object_array_length(merged); i++) {
        runner_message_text(json_object_array_get_idx(merged, i), pool);
    }
    json_object_put(merged);
}

static void read_query(const char *text, apr_pool_t *pool)
{
    request_rec r = {.args = (char *)text};
    agent_call_t call = {.r = &r, .pool = pool};
    const char *const *words = NULL;

    must(agent_request_query(&call) == APR_SUCCESS
             && agent_request_words(&words, &call, "select", agent_run_fields)
                 == APR_SUCCESS
             && words != NULL,
         "a query string is refused");
    agent_request_drop_query(&call);
}

typedef void (*read_t)(const char *text, apr_pool_t *pool);

/* Reads text within a new pool and prints what that allocated. */
static void measure(read_t reading, const char *text, const char *label)
{
    apr_allocator_t *allocator;
    apr_pool_t *pool;
    size_t before = allocated;

    CALLGRIND_ZERO_STATS;
    CALLGRIND_TOGGLE_COLLECT;
    apr_allocator_create(&allocator);
    apr_pool_create_ex(&pool, NULL, NULL, allocator);
    apr_allocator_owner_set(allocator, pool);
    reading(text, pool);
    apr_pool_destroy(pool);
    CALLGRIND_TOGGLE_COLLECT;
    CALLGRIND_DUMP_STATS;
    printf("%s %zu %zu\n", label, strlen(text), allocated - before);
}

static void run_query_case(int number)
{
    char label[64];
    query_t query;
    query_dimension_t dimension = (query_dimension_t)draw(QUERY_DIMENSIONS);

    draw_query(&query);
    for (int grown = 0; grown < 2; grown++) {
        char *text = print_query(&query);

        snprintf(label, sizeof(label), "%d query %s %d", number,
                 query_dimension_names[dimension], grown);
        measure(read_query, text, label);
        free(text);
        query.size[dimension] *= 4;
    }
}

static void run_case(int number)
{
    char label[64];
    body_t body;
    dimension_t dimension = (dimension_t)draw(DIMENSIONS);

    draw_body(&body);
    for (int grown = 0; grown < 2; grown++) {
        char *text = print_body(&body);

        snprintf(label, sizeof(label), "%d request %s %d", number,
                 dimension_names[dimension], grown);
        measure(read_request, text, label);
        snprintf(label, sizeof(label), "%d line %s %d", number,
                 dimension_names[dimension], grown);
        measure(read_line, text, label);
        free(text);
        if (body.item == ITEM_MESSAGE || body.item == ITEM_BLOCKS) {
            text = print_messages(&body);
            snprintf(label, sizeof(label), "%d messages %s %d", number,
                     dimension_names[dimension], grown);
            measure(read_messages, text, label);
            free(text);
        }
        body.size[dimension] *= 4;
    }
}

int main(int argc, char **argv)
{
    int cases = argc == 3 ? atoi(argv[2]) : 0;

    state = argc == 3 ? strtoull(argv[1], NULL, 10) * 2654435769ULL + 1 : 1;
    apr_initialize();
    for (int i = 0; i < cases; i++) {
        run_case(i);
        run_query_case(i);
    }
    apr_terminate();
    return 0;
}
