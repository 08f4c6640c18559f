/* SPDX-License-Identifier: Apache-2.0 */
/* The sets of eight ways that a key may be in. With three choices, at a steady
 * load of 0.7, less than one new key in a million finds all its ways in use
 * (with two choices one in 600). */
#ifndef RLR_CHOICE_H
#define RLR_CHOICE_H

#include <stdint.h>

#define RLR_CHOICES 3
#define RLR_WAYS    8U

/* Sets the choices of `count` sets from a hash. The odd factor (from the golden
 * ratio) derives a third number from its two halves. */
static inline void rlr_choice_find(uint32_t sets[RLR_CHOICES], uint64_t hash,
                                   uint32_t count)
{
    uint64_t third = hash * 0x9e3779b97f4a7c15U;

    sets[0] = (uint32_t)((hash >> 32) * count >> 32);
    sets[1] = (uint32_t)((hash & 0xffffffffU) * count >> 32);
    sets[2] = (uint32_t)((third >> 32) * count >> 32);
}

/* Returns the choice with the most usable ways, which are bits: to claim these
 * balances the sets. */
static inline int rlr_choice_emptiest(const uint32_t usable[RLR_CHOICES])
{
    int emptiest = 0;

    for (int i = 1; i < RLR_CHOICES; i++) {
        if (__builtin_popcount(usable[i])
            > __builtin_popcount(usable[emptiest])) {
            emptiest = i;
        }
    }
    return emptiest;
}

#endif
