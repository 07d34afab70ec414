/* memtable_int.h - a memtable for RocksDB that is a radix tree: see radix_int.h. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Registers it with RocksDB, and returns its name: the value of the option memtable_factory. */
const char *memtable_register(void);

#ifdef __cplusplus
}
#endif
