/* crc32.h - the checksum of zlib, Ethernet and PNG (polynomial 0x04C11DB7, reflected).
 *
 * It finds bytes that were damaged by accident. It is no defence against an attacker, who
 * can change the checksum too.
 */
#pragma once

#include "base/slice.h"

uint32_t crc32_of(Slice bytes);
