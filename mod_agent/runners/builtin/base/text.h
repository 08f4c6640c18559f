/* SPDX-License-Identifier: Apache-2.0 */
/* Text from models, tools and clients made fit for the protocol, and words. */
#ifndef AGENT_RUNNER_TEXT_H
#define AGENT_RUNNER_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include <apr_pools.h>

/* U+FFFD. */
#define RUNNER_TEXT_REPLACEMENT "\xef\xbf\xbd"

/*
 * The bytes as UTF-8 without U+0000, in pool: whatever is not UTF-8 becomes
 * U+FFFD. *out_length (may be NULL) receives the length in bytes.
 */
const char *runner_text_clean(const char *bytes, size_t length,
                              size_t *out_length, apr_pool_t *pool);

/*
 * The same for JSON text: also \u0000 and escapes of half a surrogate pair
 * become \ufffd, or with keeps_surrogates the private character of that half
 * (halves.h). Text that is not JSON comes out as text that is not JSON.
 */
const char *runner_text_clean_json(const char *bytes, size_t length,
                                   bool keeps_surrogates, size_t *out_length,
                                   apr_pool_t *pool);

/*
 * Length in bytes of the first word of text with the white space before it;
 * white space at the very end belongs to the last word. 0 for "".
 */
size_t runner_text_word(const char *text);

/* How many words text has; NULL has none. */
int runner_text_count(const char *text);

/* At most max bytes of text, cut between characters, "..." added when cut. */
const char *runner_text_shorten(const char *text, size_t max, apr_pool_t *pool);

#endif
