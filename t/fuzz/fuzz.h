/* SPDX-License-Identifier: Apache-2.0 */
/* Included by every fuzzer: APR, a pool for each input, and must(). */
#ifndef AGENT_T_FUZZ_H
#define AGENT_T_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <apr_general.h>
#include <apr_pools.h>
#include <apr_strings.h>

/* An assertion that holds for every input. */
#define must(condition)                                                        \
    do {                                                                       \
        if (!(condition)) {                                                    \
            abort();                                                           \
        }                                                                      \
    } while (0)

int LLVMFuzzerInitialize(int *count, char ***words);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* The harness of one fuzzer: reads the input. pool is destroyed afterwards. */
static void examine(const char *text, size_t length, apr_pool_t *pool);

int LLVMFuzzerInitialize(int *count, char ***words)
{
    return apr_initialize() == APR_SUCCESS ? 0 : 1;
}

/* The text is followed by a NUL, and by nothing that may be read. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *text = malloc(length + 1);
    apr_pool_t *pool;

    must(text != NULL);
    for (size_t i = 0; i < length; i++) {
        text[i] = (char)bytes[i];
    }
    text[length] = '\0';
    apr_pool_create(&pool, NULL);
    examine(text, length, pool);
    apr_pool_destroy(pool);
    free(text);
    return 0;
}

#endif
