/* SPDX-License-Identifier: Apache-2.0 */
/* APR's rings with the standard's offsetof: APR's own subtracts null pointers,
 * which is undefined and what clang warns of. */
#ifndef AGENT_SUPERVISOR_RING_H
#define AGENT_SUPERVISOR_RING_H

#include <stddef.h>

#include <apr_ring.h>

#undef APR_OFFSETOF
#define APR_OFFSETOF(type, field) offsetof(type, field)

#endif
