/* SPDX-License-Identifier: Apache-2.0 */
/* The smaller and the larger of two values of one type. Each argument is
 * evaluated once; one must not contain the same macro. */
#ifndef AGENT_SUPERVISOR_ORDER_H
#define AGENT_SUPERVISOR_ORDER_H

#define AGENT_MIN(a, b)                                                        \
    ({                                                                         \
        __auto_type min_a = (a);                                               \
        __auto_type min_b = (b);                                               \
        min_a < min_b ? min_a : min_b;                                         \
    })

#define AGENT_MAX(a, b)                                                        \
    ({                                                                         \
        __auto_type max_a = (a);                                               \
        __auto_type max_b = (b);                                               \
        max_a > max_b ? max_a : max_b;                                         \
    })

#endif
