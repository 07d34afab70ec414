/* log_room_int.h - a write-ahead log with room ahead of its end: see log_room.cc. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Tells RocksDB of it, and under which name it finds it: the option env. */
const char *log_room_register(void);

#ifdef __cplusplus
}
#endif
