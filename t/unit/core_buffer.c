/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/buffer.c */
/* The growing buffer: content, termination, memory. */
#include "check.h"

#include <stdint.h>
#include <string.h>

#include "core/buffer.h"

/* A sequence of bytes without a short period. */
static char byte_at(apr_size_t i)
{
    return (char)(i * 31 % 251);
}

/* A linear congruential generator: the same numbers in each run. */
static apr_size_t next_number(uint32_t *seed)
{
    *seed = *seed * 1664525U + 1013904223U;
    return *seed >> 8;
}

static void random_appends_and_consumes_keep_the_content(void **state)
{
    agent_buffer_t buffer;
    apr_size_t in = 0;
    apr_size_t out = 0;
    uint32_t seed = 2;

    agent_buffer_init(&buffer, *state);
    for (int i = 0; i < 20000; i++) {
        char bytes[700];
        apr_size_t length = next_number(&seed) % sizeof(bytes);

        for (apr_size_t j = 0; j < length; j++) {
            bytes[j] = byte_at(in++);
        }
        agent_buffer_append(&buffer, bytes, length);
        length = next_number(&seed) % (agent_buffer_length(&buffer) + 1);
        length = i % 50 == 0 ? agent_buffer_length(&buffer) : length / 4;
        for (apr_size_t j = 0; j < length; j++) {
            assert_int_equal(agent_buffer_text(&buffer)[j], byte_at(out++));
        }
        agent_buffer_consume(&buffer, length);
        assert_int_equal(agent_buffer_length(&buffer), in - out);
        assert_int_equal(agent_buffer_text(&buffer)[in - out], '\0');
    }
}

static void an_unused_buffer_is_the_empty_text(void **state)
{
    agent_buffer_t buffer;

    agent_buffer_init(&buffer, *state);
    assert_string_equal(agent_buffer_text(&buffer), "");
    assert_int_equal(agent_buffer_length(&buffer), 0);
    agent_buffer_append(&buffer, "", 0);
    agent_buffer_clear(&buffer);
    agent_buffer_truncate(&buffer, 3);
    assert_string_equal(agent_buffer_text(&buffer), "");
}

static void the_content_is_terminated_after_each_change(void **state)
{
    agent_buffer_t buffer;

    agent_buffer_init(&buffer, *state);
    memcpy(agent_buffer_reserve(&buffer, 10), "0123456789", 10);
    agent_buffer_commit(&buffer, 4);
    assert_string_equal(agent_buffer_text(&buffer), "0123");
    agent_buffer_print(&buffer, "%s-%d", "x", 5);
    assert_string_equal(agent_buffer_text(&buffer), "0123x-5");
    agent_buffer_consume(&buffer, 2);
    assert_string_equal(agent_buffer_text(&buffer), "23x-5");
    agent_buffer_truncate(&buffer, 3);
    assert_string_equal(agent_buffer_text(&buffer), "23x");
    agent_buffer_clear(&buffer);
    assert_string_equal(agent_buffer_text(&buffer), "");
}

static void a_printed_text_may_be_longer_than_the_room(void **state)
{
    agent_buffer_t buffer;

    agent_buffer_init(&buffer, *state);
    agent_buffer_append(&buffer, "ab", 2);
    agent_buffer_print(&buffer, "%09000d", 7);
    assert_int_equal(agent_buffer_length(&buffer), 9002);
    assert_int_equal(agent_buffer_text(&buffer)[9001], '7');
    assert_int_equal(agent_buffer_text(&buffer)[9002], '\0');
}

static void a_large_buffer_that_becomes_empty_frees_its_memory(void **state)
{
    agent_buffer_t buffer;
    char *text = apr_palloc(*state, 1000000);

    memset(text, 'x', 1000000);
    agent_buffer_init(&buffer, *state);
    agent_buffer_append(&buffer, text, 1000000);
    agent_buffer_consume(&buffer, 999997);
    assert_string_equal(agent_buffer_text(&buffer), "xxx");
    agent_buffer_consume(&buffer, 3);
    assert_null(buffer.pool);
    agent_buffer_append(&buffer, "a", 1);
    agent_buffer_append(&buffer, "b", 1);
    assert_string_equal(agent_buffer_text(&buffer), "ab");
}

static void a_small_buffer_that_becomes_empty_keeps_its_memory(void **state)
{
    agent_buffer_t buffer;

    agent_buffer_init(&buffer, *state);
    agent_buffer_append(&buffer, "abc", 3);
    agent_buffer_consume(&buffer, 3);
    assert_non_null(buffer.pool);
    assert_string_equal(agent_buffer_text(&buffer), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(random_appends_and_consumes_keep_the_content),
        CHECK_TEST(an_unused_buffer_is_the_empty_text),
        CHECK_TEST(the_content_is_terminated_after_each_change),
        CHECK_TEST(a_printed_text_may_be_longer_than_the_room),
        CHECK_TEST(a_large_buffer_that_becomes_empty_frees_its_memory),
        CHECK_TEST(a_small_buffer_that_becomes_empty_keeps_its_memory),
    };

    return CHECK_RUN(tests);
}
