/* SPDX-License-Identifier: Apache-2.0 */
/* Exact logs of the simulation: which key, and when. */
#ifndef GROUP_LOG_H
#define GROUP_LOG_H

#include <stdint.h>

typedef struct sim_entry_t {
    uint32_t key;
    uint64_t us;
} sim_entry_t;

typedef struct sim_log_t {
    sim_entry_t *entries;
    uint64_t count;
    uint64_t room;
} sim_log_t;

void sim_log_add(sim_log_t *log, uint32_t key, uint64_t us);

#endif
