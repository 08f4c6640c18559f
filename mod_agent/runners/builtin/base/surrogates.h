/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Surrogate pairs that a server cut in two. A server that cuts its texts by
 * UTF-16 units sends the halves of one character in two events; clients in
 * JavaScript put them together without noticing. While such a half is on its
 * way it is a private character of plane 16.
 */
#ifndef AGENT_RUNNER_SURROGATES_H
#define AGENT_RUNNER_SURROGATES_H

#include <stddef.h>

#include <apr_pools.h>

/* The private character of the half U+D800 + n is this one + n. */
#define RUNNER_SURROGATES_BASE 0x10f800

/* Writes the four bytes of the private character of a half. */
void runner_surrogates_write(char out[4], unsigned half);

/*
 * Puts halves together: *pending (0 at first) is the first half that the text
 * before ended with. Returns the text that can be shown now, in pool or text
 * itself; a half without its other half becomes U+FFFD.
 */
const char *runner_surrogates_join(unsigned *pending, const char *text,
                               size_t *length, apr_pool_t *pool);

#endif
