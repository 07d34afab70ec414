/* file_limit.h - how many files the process may have open. */
#pragma once

#include "base/log.h"

/* Every connection is a file, so the limit is raised as far as the system permits. Returns how many
 * connections there may be then, at most 'connections_max'. */
uint32_t file_limit_raise(uint32_t connections_max, const Log *log);
