/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over rings that static analysis understands. */
#ifndef AGENT_SUPERVISOR_RING_H
#define AGENT_SUPERVISOR_RING_H

#include "../core/ring.h"

/* For each element; the body must not remove it. */
#define AGENT_RING_EACH(at, head, type, link)                                  \
    for ((at) = APR_RING_FIRST(head);                                          \
         (at) != APR_RING_SENTINEL(head, type, link);                          \
         (at) = APR_RING_NEXT(at, link))

/* For each element; the body may remove it. */
#define AGENT_RING_EACH_SAFE(at, next, head, type, link)                       \
    for ((at) = APR_RING_FIRST(head), (next) = APR_RING_NEXT(at, link);        \
         (at) != APR_RING_SENTINEL(head, type, link);                          \
         (at) = (next), (next) = APR_RING_NEXT(at, link))

#endif
