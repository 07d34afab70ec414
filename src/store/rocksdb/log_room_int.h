/* log_room_int.h - options of a database whose write-ahead log has room ahead of its end. */
#pragma once

#include <rocksdb/c.h>

#ifdef __cplusplus
extern "C" {
#endif

/* RocksDB's own options but for the log: see log_room.cc. The caller destroys them. */
rocksdb_options_t *log_room_options(void);

#ifdef __cplusplus
}
#endif
