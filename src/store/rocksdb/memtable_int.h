/* memtable_int.h - what RocksDB calls a memtable, as a radix tree: see radix_int.h. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Tells RocksDB of it, and under which name it finds it: the option memtable_factory. */
const char *memtable_register(void);

#ifdef __cplusplus
}
#endif
