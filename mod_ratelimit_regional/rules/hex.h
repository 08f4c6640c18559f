/* SPDX-License-Identifier: Apache-2.0 */
/* Hex digits. */
#ifndef RLR_HEX_H
#define RLR_HEX_H

/* Returns the value of a hex digit in either case, 0 to 15; -1 for any other
 * byte. */
static inline int rlr_hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
