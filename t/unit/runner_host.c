/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/base/host.c */
/* The host of a URL. */
#include "check.h"

#include "runners/builtin/base/host.h"

static void the_host_of_a_url_includes_its_port(void **state)
{
    assert_string_equal(runner_host_read("https://api.example/v1", *state),
                        "api.example");
    assert_string_equal(
        runner_host_read("http://user:secret@127.0.0.1:9/x?y", *state),
        "127.0.0.1:9");
    assert_string_equal(runner_host_read("nonsense://[", *state),
                        "nonsense://[");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(the_host_of_a_url_includes_its_port),
    };

    return CHECK_RUN(tests);
}
