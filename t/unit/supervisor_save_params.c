/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* The parameters of agent.save_batch, and the channels of a checkpoint; see
 * supervisor/statement/save_params.h. */
#include "supervisor_batches.h"

#include <stdio.h>

#include <arpa/inet.h>

#include <apr_strings.h>

#include "../../mod_agent/supervisor/statement/save_params.h"

/* Positions of parameters, from 1 as in the statement. */
enum {
    IDS = 3,
    EPOCHS,
    BATCHES,
    COUNTED,
    SAVED_EVENTS,
    LOCKS_THREAD,
    LAST_EVENTS,
    STATUSES,
    ERRORS,
    IS_FAILURE,
    RESULTS,
    EVENT_RUNS,
    EVENT_SEQS,
    EVENT_NAMES,
    EVENT_DATA,
    EVENT_CHECKPOINTS,
    EVENT_PATHS,
    CHECKPOINT_RUNS,
    NAMESPACES,
    CHECKPOINT_IDS,
    PARENTS,
    NEXT,
    TASKS,
    METADATA,
    FORMATS,
    CHANNEL_CHECKPOINTS,
    NAMES,
    KINDS,
    KEEPS,
    LENGTHS,
    BYTES,
    CONTENTS,
    ELEMENTS,
    RECORDS,
    TASK_REPORTS
};

#define ID        "01234567-89ab-cdef-0123-456789abcdef"
#define EVENT(x)  "{\"type\":\"event\",\"event\":\"custom\"," x "}"
#define VALUES(x) CHECKPOINT("null", x)
#define CHECKPOINT(parent, values)                                             \
    "{\"type\":\"checkpoint\",\"checkpoint_id\":\"" ID "\",\"parent\":" parent \
    ",\"values\":" values                                                      \
    ",\"next\":[\"a\"],\"tasks\":[ ],\"metadata\":{\"step\":1.50}}"

static apr_uint32_t read_word(const char **at)
{
    apr_uint32_t word;

    memcpy(&word, *at, sizeof(word));
    *at += sizeof(word);
    return ntohl(word);
}

static const char *show_element(const char *bytes, apr_uint32_t length,
                                apr_uint32_t type, apr_pool_t *pool)
{
    const char *at = bytes;

    switch (type) {
    case AGENT_DB_BOOLEAN:
        return *bytes ? "t" : "f";
    case AGENT_DB_INTEGER:
        return apr_itoa(pool, (int)read_word(&at));
    case AGENT_DB_BIGINT:
        read_word(&at);
        return apr_itoa(pool, (int)read_word(&at));
    case AGENT_DB_UUID:
        assert_int_equal(length, 16);
        return apr_psprintf(pool, "%08x", read_word(&at));
    default:
        return apr_pstrmemdup(pool, bytes, length);
    }
}

/* The elements of an array in binary format, separated by "; ". */
static const char *show(const agent_db_params_t *params, int number,
                        apr_pool_t *pool)
{
    const char *at = params->values[number - 1];
    const char *end = at + params->lengths[number - 1];
    const char *text = "";
    apr_uint32_t dimensions = read_word(&at);
    apr_uint32_t has_null = read_word(&at);
    apr_uint32_t type = read_word(&at);
    apr_uint32_t count = dimensions > 0 ? read_word(&at) : 0;

    assert_int_equal(params->formats[number - 1], 1);
    if (dimensions > 0) {
        assert_int_equal(read_word(&at), 1);
    }
    for (apr_uint32_t i = 0; i < count; i++) {
        apr_uint32_t length = read_word(&at);
        const char *element = "null";

        if (length == UINT32_MAX) {
            assert_int_equal(has_null, 1);
        }
        else {
            element = show_element(at, length, type, pool);
            at += length;
        }
        text = apr_pstrcat(pool, text, i > 0 ? "; " : "", element, NULL);
    }
    assert_ptr_equal(at, end);
    return text;
}

static void add(const fixture_t *fixture, int run, agent_item_kind_t kind,
                const char *line)
{
    agent_batch_add(&fixture->runs->batches, fixture->leases[run], kind, line,
                    strlen(line), -1);
}

static fixture_t *begin(apr_pool_t *pool)
{
    fixture_t *fixture = make_fixture(pool);

    for (int i = 0; i < RUNS; i++) {
        apr_cpystrn(fixture->leases[i]->deployment_id, ID, AGENT_UUID_SIZE);
    }
    return fixture;
}

static agent_db_params_t make(const fixture_t *fixture)
{
    agent_db_params_t params;

    agent_save_params_make(&params, "7", &fixture->runs->leases,
                           first_batch(&fixture->runs->batches),
                           fixture->runs->context->pool);
    assert_string_equal(params.values[0], "7");
    return params;
}

static void a_run_has_its_end_and_the_number_of_its_last_event(void **state)
{
    apr_pool_t *pool = *state;
    fixture_t *fixture = begin(pool);
    agent_db_params_t params;

    fixture->leases[0]->next_seq = 5;
    fixture->leases[0]->saved_batches = 2;
    fixture->leases[0]->saved_seq = 4;
    fixture->leases[1]->saved_seq = -1;
    fixture->leases[2]->saved_seq = 7;
    add(fixture, 0, AGENT_ITEM_METADATA, EVENT("\"data\":{}"));
    add(fixture, 1, AGENT_ITEM_END,
        "{\"type\":\"end\",\"status\":\"error\",\"error\":{\"a\":1},"
        "\"value\":null}");
    add(fixture, 0, AGENT_ITEM_EVENT, EVENT("\"data\":null"));
    add(fixture, 2, AGENT_ITEM_FAILURE,
        "{\"type\":\"end\",\"status\":\"timeout\",\"value\":[1]}");
    params = make(fixture);
    assert_string_equal(show(&params, IDS, pool),
                        "00000000; 11111111; 22222222");
    assert_string_equal(show(&params, EPOCHS, pool), "1; 1; 1");
    assert_string_equal(show(&params, BATCHES, pool), "3; 1; 1");
    assert_string_equal(show(&params, COUNTED, pool), "f; t; t");
    assert_string_equal(show(&params, SAVED_EVENTS, pool), "4; null; 7");
    assert_string_equal(show(&params, LOCKS_THREAD, pool), "f; t; t");
    assert_string_equal(show(&params, LAST_EVENTS, pool), "6; null; null");
    assert_string_equal(show(&params, STATUSES, pool), "null; error; timeout");
    assert_string_equal(show(&params, ERRORS, pool), "null; {\"a\":1}; null");
    assert_string_equal(show(&params, IS_FAILURE, pool), "f; f; t");
    assert_string_equal(show(&params, RESULTS, pool), "null; null; [1]");
    assert_string_equal(show(&params, EVENT_RUNS, pool), "1; 1");
    assert_string_equal(show(&params, EVENT_SEQS, pool), "5; 6");
    assert_string_equal(show(&params, EVENT_DATA, pool), "{}; null");
    assert_string_equal(show(&params, CHECKPOINT_IDS, pool), "");
    assert_null(params.values[RECORDS - 1]);
    assert_null(params.values[TASK_REPORTS - 1]);
}

static void an_event_has_the_text_of_its_data(void **state)
{
    apr_pool_t *pool = *state;
    fixture_t *fixture = begin(pool);
    agent_db_params_t params;

    add(fixture, 0, AGENT_ITEM_EVENT, EVENT("\"data\": {\"b\" : 1.10} "));
    add(fixture, 1, AGENT_ITEM_EVENT, EVENT("\"checkpoint_id\":\"" ID "\""));
    add(fixture, 1, AGENT_ITEM_EVENT,
        EVENT("\"checkpoint_id\":\"" ID "\",\"path\":[\"x\"],\"data\":{}"));
    params = make(fixture);
    assert_string_equal(show(&params, EVENT_RUNS, pool), "1; 2; 2");
    assert_string_equal(show(&params, EVENT_NAMES, pool),
                        "custom; custom; custom");
    assert_string_equal(show(&params, EVENT_DATA, pool),
                        "{\"b\" : 1.10}; null; {}");
    assert_string_equal(show(&params, EVENT_CHECKPOINTS, pool),
                        "null; 01234567; 01234567");
    assert_string_equal(show(&params, EVENT_PATHS, pool),
                        "null; null; [\"x\"]");
}

static void a_checkpoint_has_the_texts_of_its_members(void **state)
{
    apr_pool_t *pool = *state;
    fixture_t *fixture = begin(pool);
    agent_db_params_t params;

    add(fixture, 0, AGENT_ITEM_CHECKPOINT, VALUES("{}"));
    add(fixture, 1, AGENT_ITEM_CHECKPOINT,
        "{\"ns\":\"a|b\",\"format\":\"f1\",\"checkpoint_id\":\"" ID
        "\",\"parent\":\"" ID "\",\"values\":{},\"next\":[],\"tasks\":[1],"
        "\"metadata\":{}}");
    params = make(fixture);
    assert_string_equal(show(&params, CHECKPOINT_RUNS, pool), "1; 2");
    assert_string_equal(show(&params, NAMESPACES, pool), "; a|b");
    assert_string_equal(show(&params, CHECKPOINT_IDS, pool),
                        "01234567; 01234567");
    assert_string_equal(show(&params, PARENTS, pool), "null; 01234567");
    assert_string_equal(show(&params, NEXT, pool), "[\"a\"]; []");
    assert_string_equal(show(&params, TASKS, pool), "[ ]; [1]");
    assert_string_equal(show(&params, METADATA, pool), "{\"step\":1.50}; {}");
    assert_string_equal(show(&params, FORMATS, pool), "null; f1");
    assert_string_equal(show(&params, LOCKS_THREAD, pool), "t; t");
    assert_string_equal(show(&params, NAMES, pool), "");
}

/* The channels of one checkpoint: names, kinds, keeps, lengths, bytes, contents
 * and numbers of elements, the last two as literals of arrays. */
static const char *split(apr_pool_t *pool, const char *line)
{
    fixture_t *fixture = begin(pool);
    agent_db_params_t params;
    const char *text = "";

    add(fixture, 0, AGENT_ITEM_CHECKPOINT, line);
    params = make(fixture);
    for (int i = NAMES; i <= ELEMENTS; i++) {
        text = apr_pstrcat(pool, text, i > NAMES ? " | " : "",
                           show(&params, i, pool), NULL);
    }
    return text;
}

/* A checkpoint whose only channel has that value. */
static const char *values_of(apr_pool_t *pool, const char *value)
{
    return apr_pstrcat(pool, "{\"values\":{\"a\":", value,
                       "},\"checkpoint_id\":\"" ID "\"}", NULL);
}

static void channels_have_the_kinds_of_their_notation(void **state)
{
    apr_pool_t *pool = *state;

    assert_string_equal(
        split(pool,
              VALUES("{\"a\":{\"$same\":true},\"k\\\"\\u00e9\":1, "
                     "\"b\":{\"$value\":{\"$same\":true}}}")),
        "a; k\"\xc3\xa9; b | same; value; value | null; null; null | "
        "null; null; null | 0; 2; 15 | "
        "{}; {\"1\"}; {\"{\\\"$same\\\":true}\"} | null; null; null");
    assert_string_equal(
        split(pool,
              VALUES("{\"l\":{\"$list\":{\"items\":[ 1, 2],"
                     "\"keep\":3}},\"e\":[],\"n\":null}")),
        "l; e; n | list; array; value | 3; null; null | 2; 0; null | "
        "4; 0; 5 | {\"1,2\"}; {}; {\"null\"} | {2}; null; null");
    assert_string_equal(
        split(pool, VALUES("{\"a\": {\t\"\\u0024value\" : \n[1,  2]} }")),
        "a | value | null | null | 8 | {\"[1,  2]\"} | null");
}

static void each_case_of_the_notation_has_its_kind_and_content(void **state)
{
    apr_pool_t *pool = *state;
    char line[1024];
    FILE *cases = fopen("t/unit/notation.txt", "re");
    int count = 0;

    assert_non_null(cases);
    while (fgets(line, sizeof(line), cases) != NULL) {
        char *field[8];
        char *rest = line;

        if (*line == '#') {
            continue;
        }
        for (int i = 0; i < 8; i++) {
            field[i] = apr_strtok(i == 0 ? line : NULL, "|\n", &rest);
            assert_non_null(field[i]);
        }
        assert_string_equal(split(pool, values_of(pool, field[0])),
                            apr_pstrcat(pool, "a | ", field[2], " | ", field[3],
                                        " | ", field[4], " | ", field[5], " | ",
                                        field[6], " | ", field[7], NULL));
        count++;
    }
    fclose(cases);
    assert_true(count > 60);
}

/* Elements of `count` bytes, quotes included. */
static const char *list_of(apr_pool_t *pool, int count, int bytes)
{
    char *element = apr_palloc(pool, (apr_size_t)bytes + 1);
    const char *list = "[";

    memset(element, 'x', (apr_size_t)bytes);
    element[0] = element[bytes - 1] = '"';
    element[bytes] = '\0';
    for (int i = 0; i < count; i++) {
        list = apr_pstrcat(pool, list, i > 0 ? "," : "", element, NULL);
    }
    return values_of(pool, apr_pstrcat(pool, list, "]", NULL));
}

static void elements_of_64_bytes_are_texts_of_their_own(void **state)
{
    apr_pool_t *pool = *state;
    const char *split_up = split(pool, list_of(pool, 3, 64));
    const char *together = split(pool, list_of(pool, 3, 60));

    assert_non_null(strstr(split_up, "a | array | null | 3 | 195 | {\""));
    assert_non_null(strstr(split_up, "\\\"\",\"\\\""));
    assert_non_null(strstr(together, "a | array | null | 3 | 183 | {\""));
    assert_null(strstr(together, "\\\"\",\"\\\""));
}

/* Whatever the elements are: a row that is cut is read as a whole. */
static void a_text_has_128_short_elements_and_2_kb_or_one_element(void **state)
{
    apr_pool_t *pool = *state;
    char *large = apr_palloc(pool, 2501);

    assert_non_null(
        strstr(split(pool, list_of(pool, 300, 3)), " | {128,128,44}"));
    /* 33 of 62 bytes with their commas have 2,078. */
    assert_non_null(strstr(split(pool, list_of(pool, 70, 62)), " | {32,32,6}"));
    memset(large, '1', 2500);
    large[2500] = '\0';
    large = apr_pstrcat(pool, "[1,2,", large,
                        ",3,4,5,6,7,8,9,10,11,12,13,14,15,"
                        "16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,"
                        "34,35,36,37,38,39,40,41,42,43,44,45,46,47,48]",
                        NULL);
    assert_non_null(strstr(split(pool, values_of(pool, large)), " | {2,1,46}"));
}

static void channels_name_their_checkpoint(void **state)
{
    apr_pool_t *pool = *state;
    fixture_t *fixture = begin(pool);
    agent_db_params_t params;

    add(fixture, 0, AGENT_ITEM_CHECKPOINT, VALUES("{\"a\":1,\"b\":2}"));
    add(fixture, 1, AGENT_ITEM_CHECKPOINT, VALUES("{}"));
    add(fixture, 0, AGENT_ITEM_CHECKPOINT, VALUES("{\"c\":3}"));
    params = make(fixture);
    assert_string_equal(show(&params, CHECKPOINT_RUNS, pool), "1; 2; 1");
    assert_string_equal(show(&params, CHANNEL_CHECKPOINTS, pool), "1; 1; 3");
    assert_string_equal(show(&params, NAMES, pool), "a; b; c");
}

/* The database refuses the checkpoint by their number; where it allows more,
 * because of the last one: none is stored with a part of its channels. */
static void of_too_many_channels_1_025_are_passed_on_the_last_as_wrong(
    void **state)
{
    apr_pool_t *pool = *state;
    fixture_t *fixture = begin(pool);
    char *values = apr_palloc(pool, 32 * 1100);
    char *out = values;
    agent_db_params_t params;
    const char *kinds;
    const char *wrong = "; null";
    int count = 1;

    for (int i = 0; i < 1100; i++) {
        out += apr_snprintf(out, 32, "%s\"c%d\":1", i > 0 ? "," : "{", i);
    }
    memcpy(out, "}", 2);
    add(fixture, 0, AGENT_ITEM_CHECKPOINT,
        apr_pstrcat(pool, "{\"checkpoint_id\":\"" ID "\",\"values\":", values,
                    "}", NULL));
    params = make(fixture);
    kinds = show(&params, KINDS, pool);
    for (const char *at = kinds; *at != '\0'; at++) {
        count += *at == ';';
    }
    assert_int_equal(count, 1025);
    assert_ptr_equal(strstr(kinds, wrong),
                     kinds + strlen(kinds) - strlen(wrong));
}

static void a_run_without_a_deployment_has_null(void **state)
{
    apr_pool_t *pool = *state;
    fixture_t *fixture = make_fixture(pool);
    agent_db_params_t params;

    fixture->leases[0]->deployment_id[0] = '\0';
    add(fixture, 0, AGENT_ITEM_EVENT, EVENT("\"data\":1"));
    params = make(fixture);
    assert_string_equal(show(&params, IDS - 1, pool), "null");
}

static void records_and_task_reports_end_with_our_members(void **state)
{
    apr_pool_t *pool = *state;
    fixture_t *fixture = begin(pool);
    agent_db_params_t params;

    add(fixture, 0, AGENT_ITEM_RECORD, "{\"type\":\"blob\",\"d\":1} \t");
    add(fixture, 1, AGENT_ITEM_TASK, "{\"type\":\"task\"}");
    add(fixture, 1, AGENT_ITEM_RECORD, "{\"type\":\"put\"}");
    params = make(fixture);
    assert_string_equal(
        params.values[RECORDS - 1],
        "[{\"type\":\"blob\",\"d\":1,\"d\":\"" ID
        "\",\"r\":\"000000000000000000000000000000000000\",\"e\":1},"
        "{\"type\":\"put\",\"d\":\"" ID
        "\",\"r\":\"111111111111111111111111111111111111\",\"e\":1}]");
    assert_string_equal(
        params.values[TASK_REPORTS - 1],
        "[{\"type\":\"task\",\"d\":\"" ID
        "\",\"r\":\"111111111111111111111111111111111111\",\"e\":1}]");
    assert_int_equal(params.formats[RECORDS - 1], 0);
    assert_string_equal(show(&params, LOCKS_THREAD, pool), "t; t");
}

static void dropped_runs_are_left_out(void **state)
{
    apr_pool_t *pool = *state;
    fixture_t *fixture = begin(pool);
    agent_db_params_t params;

    add(fixture, 0, AGENT_ITEM_TASK, "{\"type\":\"task\"}");
    add(fixture, 0, AGENT_ITEM_CHECKPOINT, VALUES("{\"a\":1}"));
    add(fixture, 1, AGENT_ITEM_EVENT, EVENT("\"data\":2"));
    agent_batch_discard(&fixture->runs->batches, fixture->leases[0]->key.run_id,
                        0, NULL);
    params = make(fixture);
    assert_string_equal(show(&params, IDS, pool), "11111111");
    assert_string_equal(show(&params, EVENT_RUNS, pool), "1");
    assert_string_equal(show(&params, NAMES, pool), "");
    assert_null(params.values[TASK_REPORTS - 1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_run_has_its_end_and_the_number_of_its_last_event),
        CHECK_TEST(an_event_has_the_text_of_its_data),
        CHECK_TEST(a_checkpoint_has_the_texts_of_its_members),
        CHECK_TEST(channels_have_the_kinds_of_their_notation),
        CHECK_TEST(each_case_of_the_notation_has_its_kind_and_content),
        CHECK_TEST(a_text_has_128_short_elements_and_2_kb_or_one_element),
        CHECK_TEST(elements_of_64_bytes_are_texts_of_their_own),
        CHECK_TEST(channels_name_their_checkpoint),
        CHECK_TEST(of_too_many_channels_1_025_are_passed_on_the_last_as_wrong),
        CHECK_TEST(a_run_without_a_deployment_has_null),
        CHECK_TEST(records_and_task_reports_end_with_our_members),
        CHECK_TEST(dropped_runs_are_left_out),
    };

    return CHECK_RUN(tests);
}
