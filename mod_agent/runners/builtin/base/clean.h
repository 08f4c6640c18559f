/* SPDX-License-Identifier: Apache-2.0 */
/* Making text from models, tools and clients valid for the protocol. */
#ifndef AGENT_RUNNER_CLEAN_H
#define AGENT_RUNNER_CLEAN_H

#include <stdbool.h>
#include <stddef.h>

#include <apr_pools.h>

/*
 * The bytes as UTF-8 without U+0000, in pool; each byte that is not valid is
 * replaced by U+FFFD. *out_length, which may be NULL, is the length in bytes.
 */
const char *runner_clean_text(const char *bytes, size_t length,
                              size_t *out_length, apr_pool_t *pool);

/*
 * The same for JSON text: \u0000 and escapes of unpaired surrogates are
 * replaced by \ufffd too, or with keeps_surrogates the latter by their private
 * characters (surrogates.h). Does not make JSON of other text.
 */
const char *runner_clean_json(const char *bytes, size_t length,
                              bool keeps_surrogates, size_t *out_length,
                              apr_pool_t *pool);

#endif
