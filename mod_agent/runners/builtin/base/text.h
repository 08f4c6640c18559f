/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a text, and shortening it. */
#ifndef AGENT_RUNNER_TEXT_H
#define AGENT_RUNNER_TEXT_H

#include <stddef.h>

#include <apr_pools.h>

/* U+FFFD. */
#define RUNNER_TEXT_REPLACEMENT "\xef\xbf\xbd"

/*
 * The length in bytes of the first word of text with the white space before it;
 * the last word includes the white space after it. 0 for "".
 */
size_t runner_text_measure_word(const char *text);

/* The number of words; 0 for NULL. */
int runner_text_count_words(const char *text);

/* At most max bytes of text, cut between characters, with "..." appended when
 * it was cut. */
const char *runner_text_shorten(const char *text, size_t max, apr_pool_t *pool);

#endif
