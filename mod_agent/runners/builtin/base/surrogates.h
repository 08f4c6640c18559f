/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Surrogate pairs that a server split. A server that cuts its texts at UTF-16
 * code units sends the two surrogates of a character in two events. Until they
 * are joined, a surrogate is represented by a private character of plane 16.
 */
#ifndef AGENT_RUNNER_SURROGATES_H
#define AGENT_RUNNER_SURROGATES_H

#include <stddef.h>

#include <apr_pools.h>

/* The private character of the surrogate U+D800 + n is this one + n. */
#define RUNNER_SURROGATES_BASE 0x10f800

/* Writes the four bytes of the private character of a surrogate. */
void runner_surrogates_write(char out[4], unsigned surrogate);

/*
 * Joins surrogates across pieces of text. *pending, at first 0, is the high
 * surrogate at the end of the previous piece. Returns the text without private
 * characters, in pool or text itself, and sets *length to its length; an
 * unpaired surrogate becomes U+FFFD.
 */
const char *runner_surrogates_join(unsigned *pending, const char *text,
                                   size_t *length, apr_pool_t *pool);

#endif
