/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning of shared memory that the parent process keeps over restarts:
 * another release of the module, loaded at one of them, must not misread it. */
#ifndef RLR_HEADER_H
#define RLR_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rlr_header_t {
    uint64_t magic; /* the kind of memory; written last */
    uint64_t size;
    uint32_t layout; /* changes with the layout and its meaning */
    uint32_t sets;
} rlr_header_t;

/* Completes memory that has been created. */
static inline void rlr_header_finish(rlr_header_t *header, uint64_t magic,
                                     uint32_t layout, uint32_t sets,
                                     uint64_t size)
{
    header->size = size;
    header->layout = layout;
    header->sets = sets;
    header->magic = magic;
}

/* Whether memory of `size` bytes, 64-byte aligned, has that kind and layout;
 * the caller compares header->size with what header->sets needs. */
static inline bool rlr_header_fits(const rlr_header_t *header, uint64_t magic,
                                   uint32_t layout, size_t size)
{
    return (uintptr_t)header % 64 == 0 && size >= sizeof(*header)
        && header->magic == magic && header->layout == layout
        && header->size <= size;
}

#endif
