/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/api_key.c */
/*
 * Compares the secret of a key with digests, while memcheck takes the secret
 * and the digests for undefined: it reports each branch and each address that
 * depends on one of their bits. secret_branches.t runs this under valgrind.
 *
 *   secret_branches key | early
 *
 * key: prints 1 for the digest of the secret, then 0 for each that differs from
 * it in one byte. early: does the same with a comparison that ends at the first
 * difference, which memcheck must report.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <valgrind/memcheck.h>

#include "../../mod_agent/core/api_key.h"

typedef bool (*compare_t)(const unsigned char *a, const unsigned char *b);

static bool compare_early(const unsigned char *a, const unsigned char *b)
{
    for (int i = 0; i < AGENT_API_KEY_DIGEST_BYTES; i++) {
        if (a[i] != b[i]) {
            return false;
        }
    }
    return true;
}

static void print_result(compare_t compare, const char *secret,
                         const unsigned char *stored)
{
    char text[AGENT_API_KEY_SECRET_CHARS];
    unsigned char record[AGENT_API_KEY_DIGEST_BYTES];
    unsigned char digest[AGENT_API_KEY_DIGEST_BYTES];
    bool is_same = false;

    memcpy(text, secret, sizeof(text));
    memcpy(record, stored, sizeof(record));
    (void)VALGRIND_MAKE_MEM_UNDEFINED(text, sizeof(text));
    (void)VALGRIND_MAKE_MEM_UNDEFINED(record, sizeof(record));
    if (agent_api_key_digest(digest, text, sizeof(text))) {
        is_same = compare(digest, record);
    }
    /* The answer itself may be known. */
    (void)VALGRIND_MAKE_MEM_DEFINED(&is_same, sizeof(is_same));
    printf("%d", is_same);
}

int main(int argc, char **argv)
{
    static const char secret[] = "No287qEH4uQv9vBo5cxQTXAw02KFtzjuPbCrH1FrBEB";
    compare_t compare = argc == 2 && strcmp(argv[1], "early") == 0
        ? compare_early
        : agent_api_key_is_digest;
    unsigned char stored[AGENT_API_KEY_DIGEST_BYTES];

    if (!agent_api_key_digest(stored, secret, strlen(secret))) {
        return 1;
    }
    print_result(compare, secret, stored);
    for (int i = 0; i < AGENT_API_KEY_DIGEST_BYTES; i++) {
        stored[i] ^= 1;
        print_result(compare, secret, stored);
        stored[i] ^= 1;
    }
    putchar('\n');
    return 0;
}
