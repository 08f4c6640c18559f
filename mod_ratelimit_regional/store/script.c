/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of protocol/grant.lua. The Makefile rebuilds this with it. */
#include "wire.h"

__asm__(".pushsection .rodata\n"
        ".hidden rlr_wire_script\n"
        ".global rlr_wire_script\n"
        "rlr_wire_script:\n"
        ".incbin \"mod_ratelimit_regional/protocol/grant.lua\"\n"
        ".byte 0\n"
        ".popsection\n");
